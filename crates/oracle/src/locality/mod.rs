//! The statistics of a trace, each computed in the most literal way.
//!
//! One function a definition, from the same slice of accesses, in exact counts wherever the
//! definition allows it. Time is quadratic in places: meant for traces of some ten thousand pages.
//! No statistic is computed from another one's intermediate result; what they share is the list
//! of page accesses and the arithmetic of [`percentile`] and its neighbours.
//!
//! A page is a unit of a device. Requests are taken in order, the units of a request ascending.

mod access;
mod distances;
mod duplicates;
mod footprint;
mod kinds;
mod misses;
mod numbers;
mod overwrites;
mod popularity;
mod rate;
mod requests;
mod times;

#[cfg(test)]
mod cross_checks;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod examples_of_values;
#[cfg(test)]
mod samples;

pub use access::{Access, AccessOp, Page, PageAccess, page_accesses, slices};
pub use distances::{
    distance_over_all, distance_over_references, page_distances, reference_counts, value_distances,
};
pub use duplicates::{Duplicates, duplicates};
pub use footprint::{Footprint, footprint};
pub use kinds::{WriteKind, WriteKinds, count_write_kinds, write_kinds};
pub use misses::{
    PopularMisses, index_sizes, live_misses, plain_misses, popular_misses, popular_values,
};
pub use numbers::{Share, mean, percentile, powers_of_two, standard_deviation};
pub use overwrites::{Overwrite, overwrite_share, overwrites};
pub use popularity::{accesses_of_top, count_histogram, popularity, unique_share, x50};
pub use rate::{bytes_per_hour, mean_window_ns, shortest_window_ns};
pub use requests::{
    Mix, OpCount, Run, Sequential, SizeHistogram, mix, sequential, size_histogram, sizes,
};
pub use times::{
    BURST_GAP_NS, Bursts, DISPERSION_WINDOWS_NS, bursts, coefficient_of_variation, gaps_ns,
    index_of_dispersion, most_in_a_second,
};
