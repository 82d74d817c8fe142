//! Setups and operations, and how they are drawn from a seed.

use std::sync::Arc;

use flashlore_content::VolumeKey;
use flashlore_flash::Lpn;
use flashlore_ftl::policies::options::SimilarOptions;
use flashlore_medium::{CrashMedium, Style};
use flashlore_volume::{
    Encoding, HistoryIdentity, Identity, MemoryShares, Policy, RecoveryBounds, Volume,
    bytes_needed, create,
};

use crate::crash::draw::Draw;
use crate::crash::pages::{FAMILIES, Value};

const NOTHING: Encoding = Encoding {
    deltas: false,
    compression: false,
};
const DELTAS: Encoding = Encoding {
    deltas: true,
    ..NOTHING
};
const COMPRESSION: Encoding = Encoding {
    compression: true,
    ..NOTHING
};
const BOTH: Encoding = Encoding {
    deltas: true,
    compression: true,
};

/// A volume and the medium beneath it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    pub policy: Policy,
    pub history: Option<HistoryIdentity>,
    pub encoding: Encoding,
    /// Deltas from one page up to which it is offered to pages that resemble it.
    pub similar: Option<u32>,
    pub exported: u32,
    pub blocks: u32,
    pub pages_per_block: u32,
    pub units_per_page: u32,
    pub alignment: u32,
    pub index_entries: u32,
    /// Whether discarded sectors, and all of the medium before the volume is made, hold garbage.
    pub garbage: bool,
    /// Whether as few pages of the tables have room in memory as can be.
    pub crowded: bool,
    /// When checkpoints are due.
    pub bounds: RecoveryBounds,
}

/// What a host does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Write {
        lpn: Lpn,
        value: Value,
        now: u64,
    },
    /// A write and a flush.
    Fua {
        lpn: Lpn,
        value: Value,
        now: u64,
    },
    Trim {
        lpn: Lpn,
    },
    Read {
        lpn: Lpn,
    },
    Flush,
    /// A flush during whose sync so many more operations are done.
    SlowFlush {
        during: u32,
    },
    Checkpoint,
    /// A checkpoint during each of whose two syncs so many more operations are done.
    SlowCheckpoint {
        during: u32,
    },
    /// So many pages of the tables are written.
    Clean {
        pages: u32,
    },
    /// Collection makes so many steps.
    Collect {
        steps: u32,
    },
    /// The present instant is kept.
    Snapshot,
    /// The snapshot with this number among those there are, over again, is deleted.
    DeleteSnapshot {
        pick: u32,
    },
    /// Back to the instant with this number among those in the window, over again.
    Rewind {
        pick: u32,
    },
    /// Everything before such an instant is given up.
    Forget {
        pick: u32,
    },
    Purge {
        first: u32,
        end: u32,
    },
    /// Everything old is forgotten, and snapshots that lack it.
    PurgeAll,
    /// The last change gets a name.
    Mark,
    /// Close and open.
    Reopen,
    /// The process ends without a word and another one opens; the medium keeps its cache.
    Kill,
}

impl Setup {
    pub fn identity(&self) -> Identity {
        Identity {
            version: flashlore_volume::format::superblock::VERSION,
            policy: self.policy,
            history: self.history,
            encoding: self.encoding,
            uuid: [7; 16],
            key: VolumeKey([9; 32]),
            created: 5,
            exported: self.exported,
            blocks: self.blocks,
            pages_per_block: self.pages_per_block,
            units_per_page: self.units_per_page,
            alignment: self.alignment,
            index_entries: self.index_entries,
            journal_bytes: 64 << 10,
        }
    }

    /// The number of values that the host writes anew, of which there are `count` before: where bases are chosen by
    /// similarity many pages resemble each other.
    pub fn first_unique(&self, count: Value) -> Value {
        match self.similar {
            Some(_) => FAMILIES + count,
            None => count,
        }
    }

    /// How bases are chosen, if by similarity.
    pub fn similar(&self) -> Option<SimilarOptions> {
        let entries = 8 * self.index_entries;
        self.similar
            .map(|sharers| SimilarOptions { entries, sharers })
    }

    /// A medium that holds these bytes.
    pub fn medium(&self, bytes: Vec<u8>) -> Arc<CrashMedium> {
        let medium = CrashMedium::from_bytes(bytes);
        Arc::new(if self.garbage {
            medium.with_garbage_after_discard()
        } else {
            medium
        })
    }

    /// What is durable once the volume was made.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn image(&self) -> Result<Vec<u8>, String> {
        let id = self.identity();
        let bytes = bytes_needed(&id).map_err(|error| error.to_string())?;
        let fill = if self.garbage { 0xDE } else { 0 };
        let medium = self.medium(vec![fill; bytes as usize]);
        create(&medium, &id).map_err(|error| error.to_string())?;
        Ok(medium.survivors(0, Style::Nothing))
    }

    /// Memory for pages of the tables.
    pub fn memory(&self) -> MemoryShares {
        MemoryShares {
            tables_at_opening: if self.crowded { 0 } else { 1 << 30 },
            tables: if self.crowded { 0 } else { 1 << 30 },
            ..MemoryShares::default()
        }
    }

    /// The most pages such a volume can store.
    fn most(&self) -> Option<u32> {
        let medium = self.medium(self.image().ok()?);
        let (volume, _) = Volume::open(medium).ok()?;
        u32::try_from(volume.status().most).ok()
    }

    /// A small volume, most often as full as it can be.
    pub fn draw(draw: &mut Draw) -> Setup {
        let history = HistoryIdentity {
            entries: draw.pick(&[3, 8, 30, 300, 300]),
            least_window: draw.pick(&[0, 5, 50]),
            protected: draw.chance(20),
        };
        let usual = RecoveryBounds::default();
        let mut setup = Setup {
            policy: draw.pick(&[Policy::Plain, Policy::Dedup, Policy::DedupTrusted]),
            history: draw.chance(50).then_some(history),
            encoding: draw.pick(&[NOTHING, NOTHING, DELTAS, COMPRESSION, BOTH]),
            similar: draw.pick(&[None, Some(1), Some(100)]),
            exported: 1,
            blocks: draw.between(2, 10) as u32,
            pages_per_block: draw.pick(&[2, 3, 4, 4, 8]),
            units_per_page: draw.pick(&[1, 2, 4]),
            alignment: draw.pick(&[512, 4096]),
            index_entries: draw.pick(&[1, 2, 4, 8, 16]),
            garbage: draw.chance(50),
            // Of those that are, some have too few pages of tables.
            crowded: draw.chance(70),
            bounds: RecoveryBounds {
                units: draw.pick(&[usual.units, usual.units, 40]),
                rows: draw.pick(&[usual.rows, usual.rows, 0, 6]),
                ..usual
            },
        };
        let most = loop {
            match setup.most() {
                Some(most) if most >= 2 => break most,
                _ => setup.blocks += 1,
            }
        };
        let shares = setup.policy != Policy::Plain;
        setup.exported = match draw.below(10) {
            0 => most + draw.between(1, 4) as u32,
            1 => (most * 3 / 4).max(1),
            2..5 if shares => most + most / 2,
            5..9 if setup.history.is_some() => (most / 2).max(1),
            _ => most,
        };
        setup
    }
}

/// How often what happens, in per cent where not said otherwise.
struct Habits {
    pool: u64,
    from_pool: u64,
    silent: u64,
    hot: u64,
    trims: u64,
    flushes: u64,
    slow_flushes: u64,
    fuas: u64,
    reads: u64,
    checkpoints: u64,
    /// Slow checkpoints, tables cleaned, and steps of collection: of each so many.
    steps: u64,
    reopens: u64,
    kills: u64,
    clock_goes_back: u64,
    /// Of each kind of operation on the history.
    history: u64,
}

impl Habits {
    fn draw(draw: &mut Draw) -> Habits {
        Habits {
            pool: draw.pick(&[2, 5, 12, 40]),
            from_pool: draw.pick(&[0, 20, 50, 90]),
            silent: draw.pick(&[0, 5, 15]),
            hot: draw.pick(&[0, 0, 80]),
            trims: draw.pick(&[1, 8, 25]),
            flushes: draw.pick(&[1, 5, 20]),
            slow_flushes: draw.pick(&[0, 3, 10]),
            fuas: draw.pick(&[0, 3, 10]),
            reads: 4,
            checkpoints: draw.pick(&[0, 1, 3]),
            steps: draw.pick(&[0, 2, 4]),
            reopens: draw.pick(&[0, 1, 2]),
            kills: draw.pick(&[0, 1, 2]),
            clock_goes_back: draw.pick(&[0, 10]),
            history: draw.pick(&[0, 1, 4]),
        }
    }
}

/// A host with habits, and what it believes the volume holds.
struct Host {
    habits: Habits,
    believed: Vec<Value>,
    now: u64,
    next_unique: Value,
}

/// Operations on a volume of which `believed` is the state. `first_unique` is above every value
/// written before.
pub fn operations(draw: &mut Draw, count: u64, believed: &[Value], first_unique: Value) -> Vec<Op> {
    let mut host = Host {
        habits: Habits::draw(draw),
        believed: believed.to_vec(),
        now: 1_000_000,
        next_unique: first_unique,
    };
    let mut ops = Vec::new();
    let empty = believed.iter().all(|&value| value == 0);
    if empty && draw.chance(70) {
        for lpn in 0..believed.len() as u32 {
            ops.push(host.write(draw, Lpn(lpn)));
        }
    }
    for _ in 0..count {
        ops.push(host.operation(draw));
    }
    ops
}

impl Host {
    fn operation(&mut self, draw: &mut Draw) -> Op {
        let lpn = self.address(draw);
        let mut dice = draw.below(100);
        let mut falls = |percent: u64| {
            let hit = dice < percent;
            dice = if hit { 100 } else { dice - percent };
            hit
        };
        let habits = &self.habits;
        if falls(habits.trims) {
            self.believed[lpn as usize] = 0;
            Op::Trim { lpn: Lpn(lpn) }
        } else if falls(habits.flushes) {
            Op::Flush
        } else if falls(habits.slow_flushes) {
            let during = draw.below(12) as u32;
            Op::SlowFlush { during }
        } else if falls(habits.reads) {
            Op::Read { lpn: Lpn(lpn) }
        } else if falls(habits.checkpoints) {
            Op::Checkpoint
        } else if falls(habits.steps) {
            let during = draw.below(8) as u32;
            Op::SlowCheckpoint { during }
        } else if falls(habits.steps) {
            let pages = 1 + draw.below(4) as u32;
            Op::Clean { pages }
        } else if falls(habits.steps) {
            let steps = 1 + draw.below(4) as u32;
            Op::Collect { steps }
        } else if falls(habits.reopens) {
            Op::Reopen
        } else if falls(habits.kills) {
            Op::Kill
        } else if falls(habits.history) {
            Op::Snapshot
        } else if falls(habits.history) {
            let pick = draw.below(100) as u32;
            Op::DeleteSnapshot { pick }
        } else if falls(habits.history) {
            let pick = draw.below(1000) as u32;
            Op::Rewind { pick }
        } else if falls(habits.history / 4) {
            let pick = draw.below(1000) as u32;
            Op::Forget { pick }
        } else if falls(habits.history.div_ceil(4)) {
            let end = lpn + 1 + draw.below(4) as u32;
            Op::Purge { first: lpn, end }
        } else if falls(habits.history.div_ceil(4)) {
            match draw.chance(25) {
                true => Op::PurgeAll,
                false => Op::Mark,
            }
        } else if falls(habits.fuas) {
            match self.write(draw, Lpn(lpn)) {
                Op::Write { lpn, value, now } => Op::Fua { lpn, value, now },
                other => other,
            }
        } else {
            self.write(draw, Lpn(lpn))
        }
    }

    fn address(&self, draw: &mut Draw) -> u32 {
        let exported = self.believed.len() as u64;
        let among = if draw.chance(self.habits.hot) {
            exported.div_ceil(4)
        } else {
            exported
        };
        draw.below(among) as u32
    }

    fn write(&mut self, draw: &mut Draw, lpn: Lpn) -> Op {
        let value = if draw.chance(self.habits.silent) {
            self.believed[lpn.index()]
        } else if draw.chance(self.habits.from_pool) {
            draw.below(self.habits.pool) as Value
        } else {
            self.next_unique += 1;
            self.next_unique
        };
        self.believed[lpn.index()] = value;
        if draw.chance(self.habits.clock_goes_back) {
            self.now -= draw.below(1_000);
        } else {
            self.now += draw.below(3);
        }
        let now = self.now;
        Op::Write { lpn, value, now }
    }
}
