//! Reads that a volume plans and somebody else carries out, and pages that are made ready to be written, while the
//! volume goes on: hashed, compared with what may hold the same, encoded.
//!
//! A plan says where a page lies. It needs no lock to be carried out: what is read is compared with the digest of the
//! page, of which the object has a half, or else read with its record, which names the generation of its block, and a
//! generation is never used twice. What was moved or erased in between is therefore noticed, never mistaken for the page,
//! and the reader asks the volume again.
//!
//! Invariant: a page that a [`PageReader`] answers is what the address held when the plan was made.

use std::sync::Arc;

use flashlore_content::{Digest, PAGE_BYTES, PageBytes, VolumeKey};
use flashlore_flash::Ppn;
use flashlore_ftl::content::bytes::{HeldEncoded, HeldValue};
use flashlore_medium::Medium;

use crate::encoder::{self, LONGEST};
use crate::error::NandError;
use crate::format::{Areas, Identity, PackSlot, UnitKind};
use crate::unit::{ELSEWHERE, MOST_RUN, Proof, StoredUnit, UnitPlace, Units};
use crate::values::{Ahead, Delta, Holding, PackedValue};

/// Where the page of an address is to be read, and what proves that it was.
#[derive(Debug)]
pub struct ReadPlan(Option<(ValueSource, Proof)>);

/// What a translation layer over bytes says of a page.
pub(crate) type HeldPage = HeldValue<StoredUnit, Arc<PackedValue>>;

#[derive(Debug)]
enum ValueSource {
    Here(StoredUnit),
    Unit(UnitPlace),
    Encoded {
        value: Encoded,
        base: Option<Box<ValueSource>>,
    },
}

#[derive(Debug)]
enum Encoded {
    Here(Arc<PackedValue>),
    Slot(UnitPlace, PackSlot),
}

impl ReadPlan {
    /// The plan of an address that holds something, or nothing.
    pub(crate) fn new(held: Option<(HeldPage, Proof)>, place: impl Fn(Ppn) -> UnitPlace) -> Self {
        ReadPlan(held.map(|(held, proof)| (ValueSource::new(held, &place), proof)))
    }

    /// The unit that holds the page as it is, and what proves it.
    fn unit(&self) -> Option<(UnitPlace, Proof)> {
        match self.0 {
            Some((ValueSource::Unit(place), proof)) => Some((place, proof)),
            _ => None,
        }
    }
}

impl ValueSource {
    fn new(held: HeldPage, place: &impl Fn(Ppn) -> UnitPlace) -> Self {
        match held {
            HeldValue::Here(unit) => ValueSource::Here(unit),
            HeldValue::Unit(ppn) => ValueSource::Unit(place(ppn)),
            HeldValue::Encoded { value, base } => ValueSource::Encoded {
                value: match value {
                    HeldEncoded::Here(value) => Encoded::Here(value),
                    HeldEncoded::Slot(ppn, slot) => Encoded::Slot(place(ppn), slot),
                },
                base: base.map(|base| Box::new(ValueSource::new(*base, place))),
            },
        }
    }
}

/// Carries out the plans of one volume.
#[derive(Clone)]
pub struct PageReader {
    medium: Arc<dyn Medium>,
    areas: Areas,
    id: Identity,
}

impl PageReader {
    pub(crate) fn new(medium: Arc<dyn Medium>, areas: Areas, id: Identity) -> Self {
        PageReader { medium, areas, id }
    }

    /// Reads what `plans` say of consecutive pages into as many pages of `bytes`. Units that lie side by side are
    /// read at once. Answers the first that is to be planned again, if any: it cannot be read, or not any more.
    ///
    /// # Panics
    /// If there are not as many plans as pages.
    pub fn fetch(&self, plans: &[ReadPlan], bytes: &mut [u8]) -> Option<usize> {
        assert_eq!(plans.len() * PAGE_BYTES, bytes.len(), "a plan a page");
        let mut from = 0;
        while let Some(plan) = plans.get(from) {
            let run = self.run(&plans[from..]);
            let space = &mut bytes[from * PAGE_BYTES..(from + run) * PAGE_BYTES];
            let read = match plan.unit() {
                Some((place, _)) => {
                    let proofs = plans[from..from + run].iter().filter_map(ReadPlan::unit);
                    let proofs = proofs.map(|(_, proof)| proof);
                    self.units()
                        .read_run(place.ppn, place.generation, proofs, space)
                }
                None => self.fetch_one(plan, space),
            };
            if read.is_err() {
                return Some(from);
            }
            from += run;
        }
        None
    }

    /// How many of these pages lie side by side in one flash page; 1 at least.
    fn run(&self, plans: &[ReadPlan]) -> usize {
        let Some((first, _)) = plans[0].unit() else {
            return 1;
        };
        let in_page = self.id.units_per_page - first.ppn.0 % self.id.units_per_page;
        let follows = |(n, plan): &(usize, &ReadPlan)| {
            plan.unit().is_some_and(|(place, _)| {
                place.generation == first.generation && place.ppn.0 == first.ppn.0 + *n as u32
            })
        };
        let plans = plans.iter().enumerate().take(in_page as usize);
        plans.take_while(follows).take(MOST_RUN).count()
    }

    fn fetch_one(&self, plan: &ReadPlan, space: &mut [u8]) -> Result<(), NandError> {
        let Some((source, proof)) = &plan.0 else {
            space.fill(0);
            return Ok(());
        };
        let unit = self.read(source, *proof)?;
        if !proof.holds(&unit.record) {
            let (ppn, why) = (Ppn::NONE, ELSEWHERE);
            return Err(NandError::Rot { ppn, why });
        }
        if unit.record.kind == UnitKind::Lost {
            return Err(NandError::Rot {
                ppn: Ppn::NONE,
                why: "its content was lost",
            });
        }
        space.copy_from_slice(&*unit.bytes);
        Ok(())
    }

    /// A page, its record left out where the page is to prove itself; so is its base, without which it would be another.
    fn read(&self, source: &ValueSource, proof: Proof) -> Result<StoredUnit, NandError> {
        let read = |place: &UnitPlace| match proof.is_of_content() {
            true => self.units().read_data(place.ppn),
            false => self.units().read(place.ppn, place.generation),
        };
        match source {
            ValueSource::Here(unit) => Ok(unit.clone()),
            ValueSource::Unit(place) => read(place),
            ValueSource::Encoded { value, base } => {
                let base = base.as_ref().map(|base| self.read(base, proof));
                let base = base.transpose()?;
                let value = match value {
                    Encoded::Here(value) => Arc::clone(value),
                    Encoded::Slot(place, slot) => encoder::unpack(&read(place)?, *slot),
                };
                Ok(encoder::decode(&self.id.key, base.as_ref(), &value))
            }
        }
    }

    /// Compares or encodes a page as planned. What that takes may lie elsewhere by now, or be replaced: then the volume
    /// does what is missing.
    pub fn work_ahead(&self, codec: &mut Codec, plan: &WritePlan, page: &mut Prepared) {
        let WritePlan(planned) = plan;
        let read = |planned: &Option<PlannedRead<ValueSource>>| {
            let planned = planned.as_ref()?;
            let unit = self.read(&planned.source, planned.proof).ok()?;
            let holds = unit.record.kind == UnitKind::Data && planned.proof.holds(&unit.record);
            holds.then_some((planned.of, unit.bytes))
        };
        let same = read(&planned.same).filter(|(_, stored)| *stored == page.bytes);
        page.ahead = Some(Arc::new(Ahead {
            same: same.map(|(of, _)| of),
            delta: read(&planned.base).map(|(base, old)| Delta {
                base,
                bytes: codec.delta(&old, &page.bytes),
            }),
            alone: planned.alone.then(|| codec.alone(&page.bytes)),
        }));
    }

    fn units(&self) -> Units<'_> {
        Units {
            medium: &self.medium,
            areas: &self.areas,
            id: &self.id,
        }
    }
}

/// What encoding takes, for one thread at a time: made when it is needed first.
#[derive(Default)]
pub struct Codec(Option<flashlore_delta::Encoder>);

impl Codec {
    fn delta(&mut self, old: &PageBytes, new: &PageBytes) -> Option<Box<[u8]>> {
        let encoder = self.0.get_or_insert_default();
        let coded = encoder.delta(flashlore_delta::Codec::default(), old, new, LONGEST);
        coded.map(Into::into)
    }

    fn alone(&mut self, page: &PageBytes) -> Option<Box<[u8]>> {
        let encoder = self.0.get_or_insert_default();
        let coded = encoder.alone(flashlore_delta::Codec::default(), page, LONGEST);
        coded.map(Into::into)
    }
}

/// A page with its digest.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(crate) bytes: Arc<PageBytes>,
    pub(crate) digest: Digest,
    pub(crate) ahead: Option<Arc<Ahead>>,
}

/// What an object holds, where that is to be read, and what proves it.
#[derive(Debug)]
pub(crate) struct PlannedRead<S> {
    pub of: Holding,
    pub source: S,
    pub proof: Proof,
}

impl PlannedRead<HeldPage> {
    fn located(self, place: &impl Fn(Ppn) -> UnitPlace) -> PlannedRead<ValueSource> {
        PlannedRead {
            of: self.of,
            source: ValueSource::new(self.source, place),
            proof: self.proof,
        }
    }
}

/// What a write would do with the page: share that of an object if the bytes are the same; otherwise, as far as can be
/// said, become a delta from what an object holds, or be compressed by itself.
#[derive(Debug)]
pub(crate) struct PlannedWrite<S> {
    pub same: Option<PlannedRead<S>>,
    pub base: Option<PlannedRead<S>>,
    pub alone: bool,
}

impl<S> Default for PlannedWrite<S> {
    fn default() -> Self {
        PlannedWrite {
            same: None,
            base: None,
            alone: false,
        }
    }
}

/// What can be done of a write while the volume goes on.
#[derive(Debug)]
pub struct WritePlan(PlannedWrite<ValueSource>);

impl WritePlan {
    pub(crate) fn new(planned: PlannedWrite<HeldPage>, place: impl Fn(Ppn) -> UnitPlace) -> Self {
        WritePlan(PlannedWrite {
            same: planned.same.map(|same| same.located(&place)),
            base: planned.base.map(|base| base.located(&place)),
            alone: planned.alone,
        })
    }

    /// Whether the page is to be compared with what may hold the same.
    pub fn compares(&self) -> bool {
        self.0.same.is_some()
    }

    /// Whether the page is to be encoded.
    pub fn encodes(&self) -> bool {
        self.0.base.is_some() || self.0.alone
    }
}

/// Does what can be done of a write before the volume is asked.
#[derive(Debug, Clone, Copy)]
pub struct Preparer(pub(crate) VolumeKey);

impl Preparer {
    /// The page with its digest.
    pub fn prepare(&self, page: &PageBytes) -> Prepared {
        Prepared {
            digest: self.0.digest(page),
            bytes: Arc::new(*page),
            ahead: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use flashlore_flash::Lpn;
    use flashlore_medium::MemoryMedium;

    use super::*;
    use crate::{CreateOptions, Volume, bytes_needed, create};

    /// No two pages are known whose digests are alike in half, so the plan of one is carried out with another.
    #[test]
    fn a_page_is_compared_byte_by_byte() {
        let id = CreateOptions::small().identity().unwrap();
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&medium, &id).unwrap();
        let (mut volume, _) = Volume::open(medium).unwrap();
        let page = [1; PAGE_BYTES];
        volume.write(1, Lpn(0), &page).unwrap();
        volume.checkpoint().unwrap();
        let plan = volume.plan_write(Lpn(1), &volume.preparer().prepare(&page));
        let plan = plan.unwrap();
        for (last, same) in [(1, true), (2, false)] {
            let mut other = page;
            other[PAGE_BYTES - 1] = last;
            let mut prepared = volume.preparer().prepare(&other);
            let reader = volume.reader();
            reader.work_ahead(&mut Codec::default(), &plan, &mut prepared);
            let ahead = prepared.ahead.expect("what was found out");
            assert_eq!(ahead.same.is_some(), same, "its last byte is {last}");
        }
    }
}
