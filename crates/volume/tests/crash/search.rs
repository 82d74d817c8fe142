//! All cuts of one history, and what follows them.
//!
//! For each cut, images of what survives are recovered from. The recovery is cut itself, at each of its
//! calls, and recovered from again; and after a recovery new operations go on until the next cut. Copies of some images
//! are damaged in one place and opened too, and a read fails in some recoveries.

use std::collections::HashSet;
use std::sync::Arc;

use flashlore_medium::Style;
use parking_lot::Mutex;

use crate::crash::damage;
use crate::crash::draw::Draw;
use crate::crash::history::{Op, Setup, operations};
use crate::crash::oracle::Oracle;
use crate::crash::pages::{Value, without_doubt};
use crate::crash::scenario::{Generation, Scenario};
use crate::crash::session::{Session, Stop, Trouble, Work};

/// How far a search goes.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Cuts of a history; all if there are fewer.
    pub cuts: usize,
    /// Images of a cut.
    pub images: usize,
    /// Runs in which a sync fails.
    pub failed_syncs: usize,
    /// Cuts of a recovery; all if there are fewer.
    pub recovery_cuts: usize,
    /// Of how many recoveries, in per cent, the recovery is cut.
    pub recut: u64,
    /// After how many recoveries, in per cent, operations go on.
    pub go_on: u64,
    /// Of how many images, in per cent, a copy is damaged and opened too.
    pub damage: u64,
    /// At how many recoveries, in per cent, a read fails first.
    pub failed_reads: u64,
}

/// Distinct contents of media, by 64 bits of BLAKE3.
#[derive(Debug, Default)]
pub struct Distinct(Mutex<HashSet<u64>>);

impl Distinct {
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    fn insert(&self, hash: u64) {
        let mut set = self.0.lock();
        set.insert(hash);
    }
}

/// What a search went through.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub cuts: u64,
    /// Runs in which a sync was to fail.
    pub failed_syncs: u64,
    /// Images taken, equal ones included.
    pub images: u64,
    /// Images opened.
    pub recoveries: u64,
    /// Recoveries that were cut.
    pub recoveries_cut: u64,
    /// Times that operations went on after a recovery until the next cut.
    pub went_on: u64,
    /// Openings during which a read failed.
    pub failed_reads: u64,
    /// Damaged images opened.
    pub damaged: Damaged,
    /// What the history did without a cut.
    pub work: Work,
}

/// What became of damaged images.
#[derive(Debug, Clone, Copy, Default)]
pub struct Damaged {
    /// They were refused.
    pub refused: u64,
    /// They opened, with present or old pages that cannot be read.
    pub with_errors: u64,
    /// They opened, and all that was compared can be read.
    pub unharmed: u64,
    /// They opened and were used on until the next cut.
    pub went_on: u64,
}

/// A scenario that fails, and how.
#[derive(Debug)]
pub struct Failure {
    pub scenario: Scenario,
    pub how: String,
}

/// The search of one history.
struct Search<'a> {
    setup: &'a Setup,
    effort: Effort,
    draw: Draw,
    distinct: &'a Distinct,
    /// Images of the first generation already recovered from, with the states allowed then.
    seen: HashSet<(u64, usize, usize)>,
    tally: Tally,
}

/// What the power left, how it came to be, and what it may be recovered to.
struct Wreck {
    image: Vec<u8>,
    path: Vec<Generation>,
    oracle: Oracle,
    epoch: u32,
}

/// Searches one history.
///
/// # Errors
/// The first failure.
pub fn search(
    setup: &Setup,
    ops: &Arc<[Op]>,
    effort: Effort,
    seed: u64,
    distinct: &Distinct,
) -> Result<Tally, Box<Failure>> {
    let mut search = Search {
        setup,
        effort,
        draw: Draw::new(seed),
        distinct,
        seen: HashSet::new(),
        tally: Tally::default(),
    };
    search.history(ops)?;
    Ok(search.tally)
}

/// Searches every cut of a short history in every style.
///
/// # Panics
/// The volume broke its promise.
pub fn every_cut(setup: &Setup, ops: &[Op]) -> Tally {
    let effort = Effort {
        cuts: usize::MAX,
        images: 2 * Style::SEARCH.len(),
        failed_syncs: 4,
        recovery_cuts: usize::MAX,
        recut: 10,
        go_on: 10,
        damage: 20,
        failed_reads: 5,
    };
    search(setup, &ops.into(), effort, 1, &Distinct::default())
        .unwrap_or_else(|failure| panic!("{}\n{}", failure.how, failure.scenario.as_test()))
}

/// A volume that was just made.
struct Start<'a> {
    setup: &'a Setup,
    image: Vec<u8>,
    ops: &'a Arc<[Op]>,
}

impl Start<'_> {
    fn session(&self, trouble: Trouble) -> Session {
        let oracle = Oracle::new(vec![0; self.setup.exported as usize]);
        let medium = self.setup.medium(self.image.clone());
        Session::new(medium, oracle, 0, trouble).of(self.setup)
    }

    fn generation(&self, trouble: Trouble, (style, seed): (Style, u64)) -> Generation {
        Generation {
            ops: Arc::clone(self.ops),
            trouble,
            style,
            seed,
            damage: None,
        }
    }
}

impl Search<'_> {
    fn history(&mut self, ops: &Arc<[Op]>) -> Result<(), Box<Failure>> {
        let calm = || vec![Generation::calm(Arc::clone(ops))];
        let setup = self.setup;
        let image = setup.image().map_err(|how| self.failure(calm(), how))?;
        let start = Start { setup, image, ops };
        let mut whole = start.session(Trouble::Never);
        let result = whole.run(ops);
        self.must_end(result, calm)?;
        whole.count();
        self.tally.work = whole.work;
        for call in self.draw.sample(whole.medium().calls(), self.effort.cuts) {
            self.tally.cuts += 1;
            self.trouble(&start, Trouble::Cut(call))?;
        }
        for _ in 0..self.effort.failed_syncs {
            let number = self.draw.between(1, 1 + whole.medium().calls() / 2);
            self.tally.failed_syncs += 1;
            self.trouble(&start, Trouble::FailedSync(number))?;
        }
        Ok(())
    }

    /// Runs into trouble, and recovers from what is left.
    fn trouble(&mut self, start: &Start<'_>, trouble: Trouble) -> Result<(), Box<Failure>> {
        let mut session = start.session(trouble);
        let result = session.run(start.ops);
        let path = || vec![start.generation(trouble, (Style::All, 0))];
        match trouble {
            Trouble::Cut(_) => self.must_be_cut(result, path)?,
            _ => self.may_fail(result, path)?,
        }
        for _ in 0..self.effort.images {
            let survivors = self.survivors();
            let generation = start.generation(trouble, survivors);
            let left = Left {
                session: &session,
                before: &start.image,
                path: &[],
            };
            for wreck in self.wrecks(&left, generation) {
                let hash = self.register(&wreck.image);
                let (sure, events) = wreck.oracle.window();
                if self.seen.insert((hash, sure, events)) {
                    self.recover(&wreck)?;
                }
            }
        }
        Ok(())
    }

    /// What a session left, and perhaps the same damaged.
    fn wrecks(&mut self, left: &Left<'_>, generation: Generation) -> Vec<Wreck> {
        let whole = left.wreck(generation.clone());
        // There are few of these, and they are what is most easily mistaken for something else.
        let moved = match left.session.has_collected() {
            true => damage::moved(&whole.image),
            false => Vec::new(),
        };
        let strike = match !moved.is_empty() || self.draw.chance(self.effort.damage) {
            true => damage::draw(
                &mut self.draw,
                self.setup,
                &moved,
                &whole.image,
                left.before,
            ),
            false => None,
        };
        let damaged = strike.map(|strike| {
            left.wreck(Generation {
                damage: Some(strike),
                ..generation
            })
        });
        let damaged = damaged.filter(|damaged| damaged.image != whole.image);
        std::iter::once(whole).chain(damaged).collect()
    }

    /// Opens a wreck; then lets a read of that opening fail, cuts it, or goes on, or all of these.
    fn recover(&mut self, wreck: &Wreck) -> Result<(), Box<Failure>> {
        let Some(session) = self.opened(wreck)? else {
            return Ok(());
        };
        if self.draw.chance(self.effort.failed_reads) {
            let read = self.draw.between(1, session.reads);
            self.fail_read(wreck, read)?;
        }
        let calls = session.medium().calls();
        if self.draw.chance(self.effort.recut) {
            for cut in self.draw.sample(calls, self.effort.recovery_cuts) {
                self.cut_recovery(wreck, cut)?;
            }
        }
        if self.draw.chance(self.effort.go_on) {
            self.go_on(wreck, session)?;
        }
        Ok(())
    }

    /// Opens a wreck. None if it is refused, because it is damaged.
    fn opened(&mut self, wreck: &Wreck) -> Result<Option<Session>, Box<Failure>> {
        let is_damaged = wreck.oracle.is_damaged();
        let mut session = self.restart(wreck, Trouble::Never);
        let result = session.open();
        let damaged = &mut self.tally.damaged;
        match (&result, session.unreadable) {
            (Err(Stop::Refused), _) => {
                damaged.refused += 1;
                return Ok(None);
            }
            (Ok(()), (0, false)) => damaged.unharmed += u64::from(is_damaged),
            _ => damaged.with_errors += u64::from(is_damaged),
        }
        self.must_end(result, || wreck.then(Generation::calm(Arc::new([]))))?;
        Ok(Some(session))
    }

    /// Lets a read of an opening fail: that changes nothing, and the next opening is as if nothing had happened.
    fn fail_read(&mut self, wreck: &Wreck, read: u64) -> Result<(), Box<Failure>> {
        self.tally.failed_reads += 1;
        let trouble = Trouble::FailedRead(read);
        let generation = Generation {
            trouble,
            ..Generation::calm(Arc::new([]))
        };
        let mut session = self.restart(wreck, trouble);
        let how = match session.open() {
            // It was refused, or it is opened and holds what it should: then a checkpoint of that opening left what it could
            // not read where it is.
            Err(Stop::ReadFailed) | Ok(()) => return Ok(()),
            Err(Stop::Broken(how)) => how,
            other => format!("read {read} of an opening failed, and it ended with {other:?}"),
        };
        Err(self.failure(wreck.then(generation), how))
    }

    /// Cuts an opening and opens what it left.
    fn cut_recovery(&mut self, wreck: &Wreck, cut: u64) -> Result<(), Box<Failure>> {
        self.tally.recoveries_cut += 1;
        let (style, seed) = self.survivors();
        let generation = Generation {
            ops: Arc::new([]),
            trouble: Trouble::Cut(cut),
            style,
            seed,
            damage: None,
        };
        let mut session = self.restart(wreck, Trouble::Cut(cut));
        let result = session.open();
        self.must_be_cut(result, || wreck.then(generation.clone()))?;
        let left = Left::of(&session, wreck);
        for next in self.wrecks(&left, generation) {
            self.register(&next.image);
            self.opened(&next)?;
        }
        Ok(())
    }

    /// Goes on after a recovery until the next cut, and recovers from that.
    fn go_on(&mut self, wreck: &Wreck, mut session: Session) -> Result<(), Box<Failure>> {
        self.tally.went_on += 1;
        self.tally.damaged.went_on += u64::from(wreck.oracle.is_damaged());
        let count = self.draw.between(1, 30);
        let count_before = 1_000_000 * (1 + wreck.path.len() as u32);
        let first_unique = self.setup.first_unique(count_before);
        let newest = session.oracle.newest().iter();
        let believed: Vec<Value> = newest.map(|&value| without_doubt(value)).collect();
        let ops: Arc<[Op]> = operations(&mut self.draw, count, &believed, first_unique).into();
        let cut = session.medium().calls() + self.draw.between(1, 1 + 2 * count);
        let (style, seed) = self.survivors();
        let generation = Generation {
            ops: Arc::clone(&ops),
            trouble: Trouble::Cut(cut),
            style,
            seed,
            damage: None,
        };
        session.cut_at(cut);
        match session.operate(&ops) {
            Ok(()) | Err(Stop::PowerCut) => {}
            // What was damaged was not missed before.
            Err(Stop::Refused) => return Ok(()),
            other => self.must_end(other, || wreck.then(generation.clone()))?,
        }
        let left = Left::of(&session, wreck);
        for next in self.wrecks(&left, generation) {
            self.register(&next.image);
            self.recover(&next)?;
        }
        Ok(())
    }

    fn restart(&mut self, wreck: &Wreck, trouble: Trouble) -> Session {
        self.tally.recoveries += u64::from(trouble == Trouble::Never);
        let medium = self.setup.medium(wreck.image.clone());
        let oracle = wreck.oracle.clone();
        Session::new(medium, oracle, wreck.epoch, trouble).of(self.setup)
    }

    fn survivors(&mut self) -> (Style, u64) {
        (self.draw.pick(&Style::SEARCH), self.draw.below(1 << 32))
    }

    /// Counts an image; answers its hash.
    fn register(&mut self, image: &[u8]) -> u64 {
        self.tally.images += 1;
        let hash = blake3::hash(image);
        let (first, _) = hash
            .as_bytes()
            .split_first_chunk()
            .expect("it has 32 bytes");
        let hash = u64::from_le_bytes(*first);
        self.distinct.insert(hash);
        hash
    }

    fn must_end(
        &self,
        result: Result<(), Stop>,
        path: impl FnOnce() -> Vec<Generation>,
    ) -> Result<(), Box<Failure>> {
        let how = match result {
            Ok(()) => return Ok(()),
            Err(Stop::Broken(how)) => how,
            Err(other) => format!("it failed without a reason: {other:?}"),
        };
        Err(self.failure(path(), how))
    }

    fn must_be_cut(
        &self,
        result: Result<(), Stop>,
        path: impl FnOnce() -> Vec<Generation>,
    ) -> Result<(), Box<Failure>> {
        let how = match result {
            Err(Stop::PowerCut) => return Ok(()),
            Err(Stop::Broken(how)) => how,
            Err(other) => format!("it failed without a reason: {other:?}"),
            Ok(()) => "a second run of the same operations made fewer calls".to_owned(),
        };
        Err(self.failure(path(), how))
    }

    /// A session with a failing sync may also end before that sync.
    fn may_fail(
        &self,
        result: Result<(), Stop>,
        path: impl FnOnce() -> Vec<Generation>,
    ) -> Result<(), Box<Failure>> {
        match result {
            Err(Stop::StoreFailed) => Ok(()),
            other => self.must_end(other, path),
        }
    }

    fn failure(&self, generations: Vec<Generation>, how: String) -> Box<Failure> {
        let setup = self.setup.clone();
        let scenario = Scenario { setup, generations };
        Box::new(Failure { scenario, how })
    }
}

/// A session whose power was cut, and what was before it.
struct Left<'a> {
    session: &'a Session,
    /// The medium when the power came on.
    before: &'a [u8],
    path: &'a [Generation],
}

impl<'a> Left<'a> {
    /// A session that began with a wreck.
    fn of(session: &'a Session, wreck: &'a Wreck) -> Self {
        Left {
            session,
            before: &wreck.image,
            path: &wreck.path,
        }
    }

    /// What is left of it.
    fn wreck(&self, generation: Generation) -> Wreck {
        let (image, oracle) = generation.end(self.session, self.before);
        let mut path = self.path.to_vec();
        path.push(generation);
        Wreck {
            image,
            path,
            oracle,
            epoch: self.session.epoch,
        }
    }
}

impl Wreck {
    /// The path with one more generation.
    fn then(&self, generation: Generation) -> Vec<Generation> {
        let mut path = self.path.clone();
        path.push(generation);
        path
    }
}
