//! A policy that is compiled into the crate's own tests alone: a witness of what the host wrote, who never looks at the
//! map but to compare. It shows what one more policy takes: this folder, and a line in the list. That holds for one that
//! changes how a write is stored, too: asked to, the witness offers every value compressed by itself.
//!
//! Invariants: a page holds what was written to it last, and nothing once it was trimmed; an object that a write named
//! has not died while a page holds it.

use std::collections::{BTreeMap, BTreeSet};

use flashlore_content::{Content, Sketch};
use flashlore_flash::{Lpn, ObjectId, Owned, Ppn, Tables};

use super::forms::Form;
use super::{Asked, How, Policy, Served, View};
use crate::mapping::objects::Objects;

/// What the host did, and what was done about it.
#[derive(Debug, Clone)]
pub(crate) struct Witness<C> {
    pages: BTreeMap<Lpn, C>,
    found: u64,
    reads: BTreeMap<Lpn, u64>,
    /// Where collection moved objects last.
    moved: BTreeMap<ObjectId, Ppn>,
    dead: BTreeSet<ObjectId>,
    /// Whether it offers a form for every write.
    offers: bool,
}

impl<C> Default for Witness<C> {
    fn default() -> Self {
        Witness {
            pages: BTreeMap::new(),
            found: 0,
            reads: BTreeMap::new(),
            moved: BTreeMap::new(),
            dead: BTreeSet::new(),
            offers: false,
        }
    }
}

/// The policy: tests put it in.
pub(super) fn room<C, S>(_: &Asked<'_, S>) -> Option<Witness<C>> {
    None
}

impl<C: Content, V: Clone, S: Tables> Policy<C, V, S> for Witness<C> {
    fn may_encode(&self, _: &View<'_, C, V, S>, _: Lpn) -> bool {
        self.offers
    }

    fn form(&mut self, _: &View<'_, C, V, S>, _: Lpn, _: Option<&Sketch>) -> Option<Form> {
        self.offers.then_some(Form::ALONE)
    }

    fn on_write(&mut self, objects: &mut Objects<C, S>, served: &Served) {
        self.pages
            .insert(served.lpn, objects.content(served.object));
        self.found += u64::from(served.how == How::Found);
        self.dead.remove(&served.object);
    }

    fn on_read(&mut self, lpn: Lpn) {
        *self.reads.entry(lpn).or_default() += 1;
    }

    fn on_relocate(&mut self, _: &Objects<C, S>, owned: Owned, to: Ppn) {
        if let Owned::Value(object) = owned {
            self.moved.insert(object, to);
        }
    }

    fn on_trim(&mut self, lpn: Lpn) {
        self.pages.remove(&lpn);
    }

    fn on_death(&mut self, _: &mut Objects<C, S>, object: ObjectId) {
        self.moved.remove(&object);
        self.dead.insert(object);
    }

    fn check(&self, objects: &Objects<C, S>, alive: &[ObjectId]) -> Result<(), String> {
        for lpn in (0..objects.len()).map(Lpn) {
            let held = objects.object_of(lpn).map(|object| objects.content(object));
            if held != self.pages.get(&lpn).copied() {
                return Err(format!("the witness saw something else at page {lpn}"));
            }
        }
        match alive.iter().find(|object| self.dead.contains(object)) {
            None => Ok(()),
            Some(object) => Err(format!("object {object} died and is alive")),
        }
    }

    fn heap_bytes(&self) -> usize {
        self.pages.len() * size_of::<(Lpn, C)>()
    }

    fn restart_counters(&mut self) {
        self.found = 0;
    }
}

#[cfg(test)]
mod tests {
    use flashlore_content::delta::{Drawn, Ratio};
    use flashlore_content::history::HistoryOptions;
    use flashlore_content::{DedupOptions, Encoder, NoCensus, NoEncoder, PageTag};
    use flashlore_flash::memory::MemoryFlash;
    use flashlore_flash::rules::Checked;
    use flashlore_flash::{Cause, Geometry, Tag, When};
    use proptest::prelude::*;

    use super::*;
    use crate::content::Outcome;
    use crate::content::parts::{Past, Present};
    use crate::map_cache::Resident;
    use crate::mapping::packs::MOST_BYTES;
    use crate::options::FtlOptions;
    use crate::policies::history::{OnPressure, VersionsOptions};
    use crate::policies::options::{EncodingOptions, HeatOptions, NEVER, ViabilityOptions};
    use crate::{ContentFtl, Policies};

    const PAGES: u32 = 60;

    /// Deduplication and old versions, without an encoder.
    type Ftl =
        ContentFtl<PageTag, Checked<MemoryFlash<PageTag>>, NoCensus, Resident, NoEncoder, Past>;

    fn medium<P: Clone>() -> Checked<MemoryFlash<P>> {
        let geometry = Geometry::single_plane(10, 16, 4096).unwrap();
        Checked::new(MemoryFlash::new(geometry))
    }

    fn policies<E>(encoding: Option<EncodingOptions>, encoder: E) -> Policies<E> {
        Policies {
            dedup: DedupOptions {
                index_entries: Some(10),
                fingerprint_bits: 64,
                verify: false,
                bypass: None,
                out_of_line: false,
            },
            encoding,
            versions: None,
            encoder,
        }
    }

    fn device() -> Ftl {
        let policies = Policies {
            versions: Some(VersionsOptions {
                history: HistoryOptions {
                    max_entries: Some(300),
                    schedule: None,
                },
                least_window: 0,
                on_pressure: OnPressure::Shrink,
                reserve: 0,
                entries_in_ram: None,
            }),
            ..policies(None, NoEncoder)
        };
        let options = FtlOptions::new(PAGES);
        let mut ftl = Ftl::with_policies(medium(), options, policies, NoCensus, Resident).unwrap();
        ftl.begin_history();
        ftl.store.policies.witness = Some(Witness::default());
        ftl
    }

    fn write(ftl: &mut Ftl, now: u64, lpn: Lpn, value: u32) {
        ftl.set_instant(now);
        ftl.write(When::now(now), lpn, PageTag(value), Tag::NONE)
            .unwrap();
    }

    proptest! {
        /// Writes, trims and reads on a device that is collected, whose old versions give way.
        #[test]
        fn a_witness_of_every_question_agrees(
            steps in prop::collection::vec((0..7u8, 0..PAGES, 1..40u32), 600),
        ) {
            let mut ftl = device();
            let mut reads = 0;
            for (now, &(step, lpn, value)) in (1..).zip(&steps) {
                match step {
                    0 => ftl.trim(Lpn(lpn)).unwrap(),
                    1 => {
                        ftl.read(now, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
                        reads += 1;
                    }
                    _ => write(&mut ftl, now, Lpn(lpn), value),
                }
            }
            ftl.check().map_err(TestCaseError::fail)?;
            let objects = ftl.objects();
            let witness = ftl.store.policies.witness.as_ref().unwrap();
            prop_assert_eq!(witness.found, ftl.dedup_counters().hits);
            prop_assert_eq!(witness.reads.values().sum::<u64>(), reads);
            prop_assert!(!witness.moved.is_empty(), "nothing was collected");
            for (&object, &to) in &witness.moved {
                prop_assert_eq!(objects.location(object), Some(to));
            }
        }
    }

    /// A policy that stores values in another form needs no more than its folder and its line: with neither deltas nor
    /// compression nothing is encoded, and with what the witness offers all that is short enough is packed.
    #[test]
    fn a_form_that_the_witness_offers_is_stored() {
        let short = Ratio {
            mean: 0.25,
            deviation: 0.0,
        };
        let long = Ratio { mean: 2.0, ..short };
        for (lengths, offers, expected) in [
            (short, false, Outcome::Programmed),
            (short, true, Outcome::Packed),
            (long, true, Outcome::Programmed),
        ] {
            let mut ftl = encoding(Drawn::new(lengths, lengths, 1));
            ftl.store.policies.witness = Some(Witness {
                offers,
                ..Witness::default()
            });
            for value in 0..40 {
                let (lpn, content) = (Lpn(value % 20), PageTag(value));
                let written = ftl.write(When::now(0), lpn, content, Tag::NONE);
                assert_eq!(written.unwrap().0, expected, "{lengths:?} {offers}");
            }
            assert_eq!(ftl.check(), Ok(()));
            let packed = ftl.packing().unwrap().packed;
            assert_eq!(packed, if expected == Outcome::Packed { 20 } else { 0 });
        }
    }

    /// A device that may encode values, and has no policy that does.
    fn encoding<E: Encoder<PageTag, ()>>(
        encoder: E,
    ) -> ContentFtl<PageTag, Checked<MemoryFlash<()>>, NoCensus, Resident, E, Present> {
        let most_bytes = MOST_BYTES as u16;
        let none = EncodingOptions {
            deltas: false,
            compress: false,
            hot_writes: NEVER,
            hot_reads: NEVER,
            most_bytes,
            viability: ViabilityOptions {
                most_bytes,
                window: 1000,
                probe: 2,
            },
            heat: HeatOptions {
                entries: None,
                protected: 0,
            },
            lambda: 0,
            most_pinned: 0,
            similar: None,
        };
        let (options, policies) = (FtlOptions::new(PAGES), policies(Some(none), encoder));
        ContentFtl::with_policies(medium(), options, policies, NoCensus, Resident).unwrap()
    }

    /// A rewind changes pages without a write: the witness is not asked, and says so.
    #[test]
    fn a_witness_that_was_not_asked_says_so() {
        let mut ftl = device();
        write(&mut ftl, 1, Lpn(0), 1);
        write(&mut ftl, 2, Lpn(0), 2);
        assert_eq!(ftl.check(), Ok(()));
        ftl.set_instant(3);
        assert_eq!(ftl.rewind_to(1), Ok(1));
        let says = ftl.check().unwrap_err();
        assert!(
            says.contains("the witness saw something else at page 0"),
            "{says}"
        );
    }
}
