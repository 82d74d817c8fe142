//! The tests of arrays, one module a subject. Disks and rivals have programs of their own.

mod exercise;
mod support;

mod allocation;
mod arbitrary;
mod bypass;
mod crash_search;
mod damage;
mod fast_lost;
mod faults;
mod image_savings;
mod images;
mod model;
mod options;
mod reshape;
mod sessions;
mod table_pages;
mod timed;
mod versions;
