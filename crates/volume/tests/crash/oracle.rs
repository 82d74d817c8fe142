//! The states a volume may come back with after a crash.
//!
//! A moment is a state of the volume: the value of each address, and what it remembers: the states it went
//! through, and its snapshots. Invariant: `moments[sure..]` are exactly the states allowed, oldest first; those
//! before are kept to say what went wrong. Of a damaged medium those are allowed that follow what it told to be
//! durable, and any of their values may be unreadable.

use std::collections::BTreeSet;
use std::sync::Arc;

use flashlore_flash::Lpn;

use crate::crash::pages::{
    NO_VALUE, PURGED, UNREADABLE, Value, agrees, doubtful, is_purged, perhaps, without_doubt,
};

/// What every address held from an instant on.
pub type Past = Vec<(u64, Arc<Vec<Value>>)>;

/// A state of a volume.
#[derive(Debug, Clone)]
pub struct Moment {
    /// The stamp of the last change of what is remembered: unlike a write of what was there it is always an event.
    remembered: u64,
    /// The number of the last event, once the volume has told it.
    sequence: Option<u64>,
    /// What every address holds.
    pub contents: Arc<Vec<Value>>,
    /// What they held, from which instant on, oldest first; the present last.
    pub past: Arc<Past>,
    /// The snapshots.
    pub snapshots: BTreeSet<u64>,
    /// The marks, in the order in which they were made.
    pub marks: Vec<(u64, String)>,
}

/// So many marks every volume remembers.
const FEW_MARKS: usize = 64;

/// What an open volume says of its history.
pub struct Told {
    pub oldest: u64,
    pub newest: u64,
    pub snapshots: BTreeSet<u64>,
    /// The marks it has not forgotten.
    pub marks: Vec<(u64, String)>,
    /// Instants, and what every address held then.
    pub instants: Vec<(u64, Vec<Value>)>,
}

impl Moment {
    fn new(contents: Vec<Value>) -> Self {
        let contents = Arc::new(contents);
        Moment {
            remembered: 0,
            sequence: None,
            past: Arc::new(vec![(0, Arc::clone(&contents))]),
            contents,
            snapshots: BTreeSet::new(),
            marks: Vec::new(),
        }
    }

    /// What every address held at an instant.
    pub fn at(&self, instant: u64) -> &Vec<Value> {
        let after = self.past.partition_point(|&(stamp, _)| stamp <= instant);
        &self.past[after.max(1) - 1].1
    }

    /// The next moment, in which addresses hold something else.
    fn then(&self, stamp: u64, contents: Vec<Value>) -> Self {
        let contents = Arc::new(contents);
        let mut past = self.past.as_ref().clone();
        past.push((stamp, Arc::clone(&contents)));
        Moment {
            remembered: self.remembered,
            sequence: None,
            past: Arc::new(past),
            contents,
            snapshots: self.snapshots.clone(),
            marks: self.marks.clone(),
        }
    }

    /// What was before their present value is purged of addresses. Whether a page was written with what it held
    /// already is not known here, so neither is whether that was purged.
    fn purge(&mut self, pages: std::ops::Range<u32>) {
        let mut past = self.past.as_ref().clone();
        for lpn in pages.start as usize..(pages.end as usize).min(self.contents.len()) {
            let mut is_present = true;
            for (_, contents) in past.iter_mut().rev() {
                let held = contents[lpn];
                is_present &= agrees(held, without_doubt(self.contents[lpn]));
                Arc::make_mut(contents)[lpn] = match is_present {
                    true => perhaps(held),
                    false => PURGED,
                };
            }
        }
        let last = past.len() - 1;
        past[last].1 = Arc::clone(&self.contents);
        self.past = Arc::new(past);
    }

    /// Whether a volume may hold this; one that is damaged may have lost anything.
    pub fn holds(&self, found: &[Value], is_damaged: bool) -> bool {
        let mut pairs = self.contents.iter().zip(found);
        pairs
            .all(|(&expected, &found)| agrees(expected, found) || is_damaged && found == UNREADABLE)
    }

    /// The same with doubt in whatever the medium may have lost: of the present what was found to be lost, and all of
    /// the past, which is not read as a whole.
    fn doubted(&self, found: &[Value]) -> Moment {
        let mut doubted = self.clone();
        let present = Arc::make_mut(&mut doubted.contents).iter_mut().zip(found);
        for (value, _) in present.filter(|(_, found)| **found == UNREADABLE) {
            *value = doubtful(*value);
        }
        let past = Arc::make_mut(&mut doubted.past);
        for (_, contents) in past.iter_mut() {
            let contents = Arc::make_mut(contents);
            contents
                .iter_mut()
                .for_each(|value| *value = doubtful(*value));
        }
        if let Some((_, last)) = past.last_mut() {
            *last = Arc::clone(&doubted.contents);
        }
        doubted
    }

    /// Whether a volume tells the truth about the past.
    fn agrees(&self, told: &Told) -> Result<(), String> {
        if told.snapshots != self.snapshots {
            let (found, expected) = (&told.snapshots, &self.snapshots);
            return Err(format!(
                "it has the snapshots {found:?}, expected {expected:?}"
            ));
        }
        if !self.marks.ends_with(&told.marks) || told.marks.len() < self.marks.len().min(FEW_MARKS)
        {
            let (found, expected) = (&told.marks, &self.marks);
            return Err(format!("it has the marks {found:?}, expected {expected:?}"));
        }
        for (instant, found) in &told.instants {
            let expected = self.at(*instant);
            let differs = |(&f, &e): (&Value, &Value)| !agrees(e, f);
            if let Some(lpn) = found.iter().zip(expected).position(differs) {
                return Err(format!(
                    "at {instant} page {lpn} is said to have held {}, it held {}",
                    found[lpn], expected[lpn]
                ));
            }
        }
        Ok(())
    }
}

/// A moment that may come to be acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mark {
    moment: usize,
    forgotten: u64,
}

/// The states since the volume was opened.
#[derive(Debug, Clone)]
pub struct Oracle {
    moments: Vec<Moment>,
    sure: usize,
    /// What the user gave up everything before, and the same as far as it is acknowledged as durable.
    forgotten: u64,
    surely_forgotten: u64,
    /// The same as far as the medium was synced since the checkpoint before: a checkpoint alone is told by its root
    /// and nothing else.
    flushed: Mark,
    /// The first state allowed of a medium that was damaged and not accepted since.
    damaged: Option<usize>,
    was_damaged: bool,
}

impl Oracle {
    /// A volume of which this state is durable.
    pub fn new(contents: Vec<Value>) -> Self {
        Oracle {
            moments: vec![Moment::new(contents)],
            sure: 0,
            forgotten: 0,
            surely_forgotten: 0,
            flushed: Mark::default(),
            damaged: None,
            was_damaged: false,
        }
    }

    /// The state after all operations.
    pub fn newest(&self) -> &[Value] {
        &self.moment().contents
    }

    /// The same with what it remembers.
    pub fn moment(&self) -> &Moment {
        self.moments.last().expect("there is always a state")
    }

    /// An operation that sets an address began.
    pub fn set(&mut self, stamp: u64, lpn: Lpn, value: Value) {
        let mut contents = self.newest().to_vec();
        contents[lpn.index()] = value;
        let next = self.moment().then(stamp, contents);
        self.moments.push(next);
    }

    /// A rewind to an instant began.
    pub fn rewind_to(&mut self, stamp: u64, instant: u64) {
        let mut contents = self.moment().at(instant).clone();
        // What was purged is zeros.
        for value in contents.iter_mut().filter(|value| is_purged(**value)) {
            *value = 0;
        }
        let next = self.moment().then(stamp, contents);
        self.moments.push(next);
    }

    /// An operation that changes what is remembered began.
    pub fn remember(&mut self, stamp: u64, change: impl FnOnce(&mut Moment)) {
        let mut next = self.moment().clone();
        next.remembered = stamp;
        next.sequence = None;
        change(&mut next);
        self.moments.push(next);
    }

    /// A purge began.
    pub fn purge(&mut self, stamp: u64, pages: std::ops::Range<u32>) {
        self.remember(stamp, |moment| moment.purge(pages));
    }

    /// The operation that began last changed nothing, it says.
    pub fn withdraw(&mut self) {
        self.moments.pop();
    }

    /// Everything so far was acknowledged as durable.
    pub fn acknowledge(&mut self) {
        self.sure = self.moments.len() - 1;
        self.surely_forgotten = self.forgotten;
    }

    /// The present, to be acknowledged later.
    pub fn mark(&self) -> Mark {
        Mark {
            moment: self.moments.len() - 1,
            forgotten: self.forgotten,
        }
    }

    /// Everything up to a mark was acknowledged as durable.
    pub fn acknowledge_to(&mut self, mark: Mark) {
        self.sure = self.sure.max(mark.moment);
        self.surely_forgotten = self.surely_forgotten.max(mark.forgotten);
    }

    /// The medium was synced after a checkpoint, if there was one.
    pub fn flushed(&mut self) {
        self.flushed = Mark {
            moment: self.sure,
            forgotten: self.surely_forgotten,
        };
    }

    /// Everything before an instant has been given up.
    pub fn forget(&mut self, instant: u64) {
        self.forgotten = self.forgotten.max(instant);
    }

    /// Changes that are acknowledged as durable, and changes that began.
    pub fn window(&self) -> (usize, usize) {
        (self.sure, self.moments.len() - 1)
    }

    /// The instants by which the states differ that are allowed.
    pub fn unsure(&self) -> impl Iterator<Item = u64> + '_ {
        let allowed = self.moments[self.sure..].iter();
        allowed.filter_map(|moment| moment.past.last().map(|&(stamp, _)| stamp))
    }

    /// Whether an open volume tells the truth.
    ///
    /// # Errors
    /// A text that says what is wrong.
    pub fn agrees(&self, told: &Told) -> Result<(), String> {
        self.has_forgotten(told)?;
        self.moment().agrees(told)
    }

    fn has_forgotten(&self, told: &Told) -> Result<(), String> {
        let (oldest, forgotten) = (told.oldest, self.surely_forgotten);
        match oldest < forgotten {
            true => Err(format!(
                "it goes back to {oldest}, everything before {forgotten} was given up"
            )),
            false => Ok(()),
        }
    }

    /// Takes what an opened volume holds, whose last event has this number: from now on this is the only state allowed.
    ///
    /// # Errors
    /// It is not an allowed state; a text that says how it differs.
    pub fn accept(
        &mut self,
        found: &[Value],
        told: Option<&Told>,
        sequence: u64,
    ) -> Result<(), String> {
        let from = self.damaged.unwrap_or(self.sure);
        if from == self.sure {
            told.map_or(Ok(()), |told| self.has_forgotten(told))?;
        }
        let is_damaged = self.damaged.is_some();
        let allowed = self.moments[from..].iter().rev();
        let mut same = allowed
            .filter(|moment| told.is_none_or(|told| moment.remembered <= told.newest))
            .filter(|moment| moment.holds(found, is_damaged))
            .map(|moment| match is_damaged {
                true => moment.doubted(found),
                false => moment.clone(),
            })
            .peekable();
        if same.peek().is_none() {
            return Err(self.explain(found));
        }
        let mut why = String::new();
        let fits = |moment: &Moment| {
            let agrees = told.map_or(Ok(()), |told| moment.agrees(told));
            agrees.map_err(|how| why = how).is_ok()
        };
        let mut fitting: Vec<Moment> = same.filter(fits).collect();
        if fitting.is_empty() {
            return Err(why);
        }
        // Of states that differ in nothing that can be read, the event tells which it is.
        let is_it = |moment: &Moment| moment.sequence == Some(sequence);
        let may_be = |moment: &Moment| moment.sequence.is_none();
        let at = fitting.iter().position(is_it);
        let at = at.or_else(|| fitting.iter().position(may_be)).unwrap_or(0);
        let mut moment = fitting.swap_remove(at);
        if let Some(told) = told {
            // Events that did not survive and had changed nothing.
            Arc::make_mut(&mut moment.past).retain(|&(stamp, _)| stamp <= told.newest);
            if from < self.sure {
                self.surely_forgotten = self.surely_forgotten.min(told.oldest);
            }
        }
        moment.sequence = Some(sequence);
        self.moments = vec![moment];
        self.sure = 0;
        self.damaged = None;
        self.forgotten = self.surely_forgotten;
        self.flushed();
        Ok(())
    }

    /// The medium is damaged before it is opened, which told until then that everything up to an event was durable.
    /// Whatever is read may be an error, and what was not told may be taken for a write that the power loss tore.
    pub fn damage(&mut self, durable: u64) {
        let is_told = |moment: &Moment| moment.sequence.is_some_and(|last| last <= durable);
        let told = self.moments.iter().rposition(is_told).unwrap_or(0);
        let told = told.min(self.flushed.moment);
        self.damaged = Some(told.min(self.damaged.unwrap_or(self.sure)));
        self.was_damaged = true;
        self.surely_forgotten = self.surely_forgotten.min(self.flushed.forgotten);
    }

    /// Whether the medium was damaged, and no volume on it has been accepted since.
    pub fn is_damaged(&self) -> bool {
        self.damaged.is_some()
    }

    /// Whether the medium was ever damaged.
    pub fn was_damaged(&self) -> bool {
        self.was_damaged
    }

    /// The volume tells the number of its last event.
    pub fn tell(&mut self, sequence: u64) {
        if let Some(moment) = self.moments.last_mut() {
            moment.sequence.get_or_insert(sequence);
        }
    }

    fn explain(&self, found: &[Value]) -> String {
        let events = self.moments.len() - 1;
        let range = format!(
            "allowed are the states after {} to {events} of {events} changes",
            self.damaged.unwrap_or(self.sure)
        );
        let holds = |moment: &Moment| moment.holds(found, self.is_damaged());
        if let Some(old) = self.moments.iter().position(holds) {
            return format!("the volume went back to its state after change {old}; {range}");
        }
        let deltas = |moment: &Moment| -> Vec<usize> {
            (0..found.len())
                .filter(|&lpn| !agrees(moment.contents[lpn], found[lpn]))
                .collect()
        };
        let nearest = (self.sure..self.moments.len())
            .min_by_key(|&index| deltas(&self.moments[index]).len())
            .expect("there is always a state");
        let mut text =
            format!("the volume holds no state it ever had; {range}, the nearest is {nearest}:");
        for lpn in deltas(&self.moments[nearest]) {
            let value = match found[lpn] {
                NO_VALUE => "bytes nobody wrote".to_owned(),
                UNREADABLE => "what cannot be read".to_owned(),
                value => format!("value {value}"),
            };
            let expected = self.moments[nearest].contents[lpn];
            text += &format!("\n  page {lpn} holds {value}, expected value {expected};");
            text += " it held, by change:";
            let mut last = None;
            for (index, moment) in self.moments.iter().enumerate() {
                let value = moment.contents[lpn];
                if last.replace(value) != Some(value) {
                    text += &format!(" {index}: {value}");
                }
            }
        }
        text
    }
}
