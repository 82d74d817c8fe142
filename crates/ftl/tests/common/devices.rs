//! Devices drawn at random: every shape, layout and policy that fits together.

use std::ops::Range;

use flashlore_flash::Geometry;
use flashlore_flash::geometry::Counts;
use flashlore_ftl::{
    Collect, FtlOptions, LayoutOptions, Level, Mode, Placement, PoolScope, Rotate, Streams,
    Trigger, VictimChoice, Watermarks, Wear,
};
use proptest::prelude::*;
use proptest::sample::select;

/// What is drawn of a device.
#[derive(Debug, Clone, Copy)]
pub struct Drawn {
    pub channels: u32,
    /// Dies of a channel.
    pub dies: u32,
    /// Planes of a die.
    pub planes: u32,
    /// Blocks of a plane.
    pub blocks: u32,
    /// Flash pages of a block.
    pub pages: u32,
    /// Units of a flash page.
    pub units: u32,
    pub placement: Placement,
    pub pool: PoolScope,
    /// Whether planes are striped before channels.
    pub reversed: bool,
    pub rotate: Rotate,
    pub victims: VictimChoice,
    pub mode: Mode,
    pub trigger: Trigger,
    pub low: u32,
    /// How far the high watermark lies above the low one.
    pub above: u32,
    pub streams: Streams,
    pub summary_page: bool,
    pub dynamic: bool,
    pub static_gap: u32,
    pub endurance: u32,
    pub sealed_before_window: bool,
}

/// Devices with so many blocks a plane and so many flash pages a block.
pub fn drawn(blocks: Range<u32>, pages: Range<u32>) -> impl Strategy<Value = Drawn> {
    let shape = (
        1u32..3,
        1u32..3,
        1u32..3,
        blocks,
        pages,
        select(vec![1u32, 2, 4]),
    );
    let layout = (
        select(vec![Placement::Static, Placement::Dynamic]),
        select(vec![
            PoolScope::Plane,
            PoolScope::Die,
            PoolScope::Package,
            PoolScope::Device,
        ]),
        any::<bool>(),
        select(vec![Rotate::Page, Rotate::Block]),
    );
    let policy = (
        select(vec![
            VictimChoice::Greedy,
            VictimChoice::Fifo,
            VictimChoice::WindowedGreedy(3),
            VictimChoice::CostBenefit,
            VictimChoice::DChoices(3),
        ]),
        select(vec![Mode::Foreground, Mode::Background]),
        select(vec![
            Trigger::Allocation,
            Trigger::Dispatch { reads: false },
            Trigger::Dispatch { reads: true },
        ]),
        1u32..4,
        0u32..3,
    );
    let more = (
        select(vec![Streams::Separate, Streams::Shared]),
        any::<bool>(),
        any::<bool>(),
        select(vec![0u32, 3]),
        select(vec![0u32, 0, 2, 5]),
        any::<bool>(),
    );
    (shape, layout, policy, more).prop_map(|(shape, layout, policy, more)| {
        let (channels, dies, planes, blocks, pages, units) = shape;
        let (placement, pool, reversed, rotate) = layout;
        let (victims, mode, trigger, low, above) = policy;
        let (streams, summary_page, dynamic, static_gap, endurance, sealed_before_window) = more;
        Drawn {
            channels,
            dies,
            planes,
            blocks,
            pages,
            units,
            placement,
            pool,
            reversed,
            rotate,
            victims,
            mode,
            trigger,
            low,
            above,
            streams,
            summary_page,
            dynamic,
            static_gap,
            endurance,
            sealed_before_window,
        }
    })
}

impl Drawn {
    pub fn geometry(&self) -> Geometry {
        Geometry::new(Counts {
            channels: self.channels,
            packages_per_channel: 1,
            dies_per_package: self.dies,
            planes_per_die: self.planes,
            blocks_per_plane: self.blocks,
            pages_per_block: self.pages,
            page_bytes: self.units * 4096,
        })
        .unwrap()
    }

    /// Units of a block that hold data.
    pub fn data_units(&self) -> u32 {
        (self.pages - u32::from(self.summary_page)) * self.units
    }

    /// The pool, no wider than a die where each die has its own pages.
    pub fn pool(&self) -> PoolScope {
        match self.pool {
            PoolScope::Package | PoolScope::Device if self.placement == Placement::Static => {
                PoolScope::Die
            }
            pool => pool,
        }
    }

    /// The settings; every plane keeps its watermark, its open blocks and one block to collect.
    pub fn options(&self) -> FtlOptions {
        let mut stripe = [Level::Channel, Level::Package, Level::Die, Level::Plane];
        if self.reversed {
            stripe.reverse();
        }
        let kept = self.low + self.above + 5;
        FtlOptions {
            exported: self.geometry().planes() * (self.blocks - kept) * self.data_units(),
            thin: false,
            barriers: false,
            log: false,
            layout: LayoutOptions {
                stripe,
                placement: self.placement,
                rotate: self.rotate,
                pool: self.pool(),
            },
            streams: self.streams,
            summary_page: self.summary_page,
            collect: Collect {
                victims: self.victims,
                mode: self.mode,
                trigger: self.trigger,
                watermarks: Watermarks {
                    low: self.low,
                    high: self.low + self.above,
                },
                copyback: self.streams == Streams::Separate,
                sealed_before_window: self.sealed_before_window,
            },
            wear: Wear {
                dynamic: self.dynamic,
                static_gap: self.static_gap,
                endurance: self.endurance,
            },
            seed: 5,
        }
    }
}
