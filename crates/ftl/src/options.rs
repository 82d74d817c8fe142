//! The settings of the core, a closed struct: systems and devices differ in values only.

use crate::layout::LayoutOptions;

/// Whether collected units share the host's open blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Host and collection write to open blocks of their own.
    Separate,
    /// Collection appends to the host's open blocks.
    Shared,
}

/// When a pool is collected relative to the host's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In the host's way, as one busy period.
    Foreground,
    /// In idle gaps, one page at a time; in the host's way only when nothing else is left.
    Background,
    /// One page at a time, whenever the caller says so ([`crate::core::Core::collect_step`]): for a device that
    /// has no idle gaps of its own. In the host's way while so few blocks of a pool are free, or fewer.
    Stepped {
        /// Free blocks.
        urgent: u32,
    },
}

impl Mode {
    /// Whether a collection is a job that goes on page by page.
    pub fn has_jobs(self) -> bool {
        self != Mode::Foreground
    }
}

/// When a foreground collection looks at the watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// When a host write has to open a block.
    Allocation,
    /// At every operation handed to a die, for all pools of that die (`spec/timing.md` section 8).
    Dispatch {
        /// At reads too.
        reads: bool,
    },
}

/// Free blocks of a pool, at or below which (`low`) collection starts, and above which (`high`) it
/// stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    /// Start at or below.
    pub low: u32,
    /// Stop above.
    pub high: u32,
}

/// Which block is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VictimChoice {
    /// Fewest valid units.
    Greedy,
    /// Sealed longest ago: a log cleaned in a circle (Rosenblum and Ousterhout, SOSP 1991).
    Fifo,
    /// Fewest valid units among this many sealed longest ago (Hu et al., SYSTOR 2009).
    WindowedGreedy(u32),
    /// Most benefit for the cost, old blocks first (Kawaguchi, Nishioka, Motoda, USENIX 1995).
    CostBenefit,
    /// Fewest valid units among this many drawn at random (Van Houdt, SIGMETRICS 2013).
    DChoices(u32),
}

/// How victims are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collect {
    /// The victim policy.
    pub victims: VictimChoice,
    /// Foreground or background.
    pub mode: Mode,
    /// When the foreground looks.
    pub trigger: Trigger,
    /// When collection starts and stops.
    pub watermarks: Watermarks,
    /// Whether a copy inside a plane stays on the chip.
    pub copyback: bool,
    /// Whether blocks sealed before the window of old versions begins are victims rather than others.
    pub sealed_before_window: bool,
}

/// Wear levelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wear {
    /// Open the least worn free block instead of the one free for the longest.
    pub dynamic: bool,
    /// Move cold data once the most worn block of a pool has this many erases more than the least
    /// worn one that holds data; 0 for never.
    pub static_gap: u32,
    /// How often a block may be filled before it is retired; 0 for any number of times.
    pub endurance: u32,
}

/// All settings of the core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FtlOptions {
    /// Logical pages of 4 KiB that the host sees.
    pub exported: u32,
    /// More may be exported than fits: whoever writes keeps the live units at or below
    /// [`crate::core::Core::most_live`].
    pub thin: bool,
    /// The flash has a volatile cache: a block freed since the last barrier is not written again
    /// before the next one.
    pub barriers: bool,
    /// Pages packed with encoded values are written, to open blocks of their own.
    pub log: bool,
    /// Where pages go.
    pub layout: LayoutOptions,
    /// Whether streams are apart.
    pub streams: Streams,
    /// Whether the last page of every block holds a summary of the block.
    pub summary_page: bool,
    /// Garbage collection.
    pub collect: Collect,
    /// Wear levelling.
    pub wear: Wear,
    /// Seeds whatever is drawn at random.
    pub seed: u64,
}

impl FtlOptions {
    /// The simplest settings: dynamic placement over pools of one plane, greedy collection in the
    /// foreground at one free block, streams apart, no wear levelling.
    pub fn new(exported: u32) -> Self {
        FtlOptions {
            exported,
            thin: false,
            barriers: false,
            log: false,
            layout: LayoutOptions::default(),
            streams: Streams::Separate,
            summary_page: false,
            collect: Collect {
                victims: VictimChoice::Greedy,
                mode: Mode::Foreground,
                trigger: Trigger::Allocation,
                watermarks: Watermarks { low: 1, high: 1 },
                copyback: false,
                sealed_before_window: false,
            },
            wear: Wear {
                dynamic: false,
                static_gap: 0,
                endurance: 0,
            },
            seed: 0,
        }
    }
}
