//! Reads that a volume plans and somebody else carries out, and pages that are made ready to be written, while the
//! volume goes on.
//!
//! A plan says where a page lies. It needs no lock to be carried out: what is read is compared with the digest of the
//! page, of which the object has a half, or else read with its record, which names the generation of its block, and a
//! generation is never used twice. What was moved or erased in between is therefore noticed, never mistaken for the page,
//! and the reader asks the volume again.
//!
//! Invariant: a page that a [`PageReader`] answers is what the address held when the plan was made.

use std::sync::Arc;

use flashlore_content::{Digest, PAGE_BYTES, PageBytes, VolumeKey};
use flashlore_flash::{ObjectId, Ppn};
use flashlore_ftl::content::bytes::{HeldEncoded, HeldValue};
use flashlore_medium::Medium;

use crate::encoder::{self, LONGEST};
use crate::error::NandError;
use crate::format::{Areas, Identity, PackSlot, UnitKind};
use crate::unit::{ELSEWHERE, MOST_RUN, Proof, StoredUnit, UnitPlace, Units};
use crate::values::{Ahead, Delta, PackedValue};

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

    /// Encodes a page as planned. What it was to differ from may lie elsewhere by now, or be replaced: then the
    /// volume does what is missing.
    pub fn encode(&self, codec: &mut Codec, plan: &EncodingPlan, page: &mut Prepared) {
        let differs_from = |(object, write_seq, source, proof): &PlannedBase| {
            let base = self.read(source, *proof).ok()?;
            let holds = base.record.kind == UnitKind::Data && proof.holds(&base.record);
            holds.then_some((*object, *write_seq, base.bytes))
        };
        let base = plan.base.as_ref().and_then(differs_from);
        page.ahead = Some(Arc::new(Ahead {
            delta: base.map(|(base, write_seq, old)| Delta {
                base,
                write_seq,
                bytes: codec.delta(&old, &page.bytes),
            }),
            alone: plan.alone.then(|| codec.alone(&page.bytes)),
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

/// What encoding takes, for one thread at a time.
#[derive(Default)]
pub struct Codec(flashlore_delta::Encoder);

impl Codec {
    fn delta(&mut self, old: &PageBytes, new: &PageBytes) -> Option<Box<[u8]>> {
        let coded = self
            .0
            .delta(flashlore_delta::Codec::default(), old, new, LONGEST);
        coded.map(Into::into)
    }

    fn alone(&mut self, page: &PageBytes) -> Option<Box<[u8]>> {
        let coded = self
            .0
            .alone(flashlore_delta::Codec::default(), page, LONGEST);
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

/// How a write would be encoded: the object it would be a delta from, its write sequence number, where it is to
/// be read and what proves that; and whether it would be compressed by itself.
#[derive(Default)]
pub(crate) struct PlannedEncoding {
    pub base: Option<(ObjectId, u64, HeldPage, Proof)>,
    pub alone: bool,
}

/// The object that a write would be a delta from, its write sequence number, where it is to be read, and what proves that.
type PlannedBase = (ObjectId, u64, ValueSource, Proof);

/// How a page would be encoded.
#[derive(Debug)]
pub struct EncodingPlan {
    base: Option<PlannedBase>,
    alone: bool,
}

impl EncodingPlan {
    pub(crate) fn new(planned: PlannedEncoding, place: impl Fn(Ppn) -> UnitPlace) -> Self {
        let source = |(object, write_seq, held, proof)| {
            (object, write_seq, ValueSource::new(held, &place), proof)
        };
        EncodingPlan {
            base: planned.base.map(source),
            alone: planned.alone,
        }
    }

    /// Whether there is nothing to do.
    pub fn is_nothing(&self) -> bool {
        self.base.is_none() && !self.alone
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
