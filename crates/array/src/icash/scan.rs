//! The scan: which of the blocks accessed last become references, and which their associates.
//!
//! The paper says when a scan runs, what it looks at, that the most popular blocks become references, and that who
//! belongs to whom is reorganized at its end (section 4.2). The rest is chosen here: in the order of popularity, a
//! block joins that of the references it resembles most from which its delta is shortest, if it is short; else it
//! becomes a reference if another block that comes later resembles it. In write-through the new references are frozen
//! together then, so that writes may be deltas from them. At the end an associate goes over to a new
//! reference that it resembles more than its own, if its delta is shorter then.
//!
//! A scan is done in steps of a few blocks, so that requests need not wait for all of it.

use std::collections::HashMap;

use flashlore_content::{SimilarIndex, Sketch};
use flashlore_delta::Page;

use crate::error::ArrayError;
use crate::icash::alike::Alike;
use crate::icash::blocks::{Content, Form, Id};
use crate::icash::content::crc_of;
use crate::icash::parameters::{Mode, Similarity};
use crate::icash::place::DataBlock;
use crate::icash::signature::Signature;
use crate::icash::state::ICash;
use crate::index::ArrayBlock;

/// Blocks that one step of a scan looks at (chosen here): some milliseconds' worth of reading and encoding.
const BLOCKS_OF_A_STEP: usize = 16;

/// A virtual block that a scan looks at.
#[derive(Debug, Clone)]
struct Candidate {
    /// The block; none for a reference without an address.
    block: Option<ArrayBlock>,
    data: Option<DataBlock>,
    signature: Signature,
    sketch: Option<Sketch>,
    popularity: u64,
}

struct Candidates {
    references: References,
    /// Most popular first.
    independents: Vec<Candidate>,
    /// The one accessed last first.
    associates: Vec<Candidate>,
}

struct References {
    /// The data block of each number in `signatures` and `index`.
    data: Vec<DataBlock>,
    signatures: Alike,
    index: Option<SimilarIndex<u32>>,
}

impl References {
    fn add(&mut self, candidate: &Candidate, data: DataBlock) {
        let number = self.data.len() as u32;
        match (&mut self.index, candidate.sketch) {
            (Some(index), Some(sketch)) => index.insert(number, sketch),
            (Some(_), None) => return,
            (None, _) => self.signatures.push(candidate.signature),
        }
        self.data.push(data);
    }

    /// The `most` that a block resembles most, of those numbered `from` and above; of equals the most popular. With
    /// sketches it is one at most, of all.
    fn best(&mut self, candidate: &Candidate, from: usize, most: usize) -> Vec<DataBlock> {
        let best = match &self.index {
            Some(index) => {
                let sketch = candidate.sketch;
                let best = sketch.and_then(|sketch| index.find(&sketch, |_| true));
                best.into_iter().map(|number| number as usize).collect()
            }
            None => self.signatures.best(&candidate.signature, from, most),
        };
        best.into_iter().map(|number| self.data[number]).collect()
    }
}

/// A scan under way. Requests may come between its steps: whatever is noted here is looked at again before it is
/// acted on.
pub(super) struct Scan {
    stage: Stage,
    /// Data blocks that became references.
    chosen: Vec<DataBlock>,
}

/// What a scan does next, with what is left of it, the next one last.
enum Stage {
    /// References that lost their last associate and were written meanwhile get a data block with their content.
    Former(Vec<ArrayBlock>),
    /// Data blocks whose signature is not known are read.
    Learn(Vec<(Id, DataBlock)>),
    /// Independents become associates or references; then associates go over to new references.
    Choose(Box<Choice>),
}

struct Choice {
    references: References,
    /// How many of them there were before the scan.
    first_new: usize,
    others: Others,
    /// Most popular first.
    independents: std::vec::IntoIter<Candidate>,
    /// How many had their turn.
    rank: usize,
    /// Whether the new references were frozen, where that is demanded.
    froze_bases: bool,
    /// The one accessed last first.
    associates: std::vec::IntoIter<Candidate>,
}

impl ICash {
    /// Begins a scan, or goes on with the one under way for some blocks.
    pub(super) fn scan_step(&mut self) -> Result<(), ArrayError> {
        let Some(mut scan) = self.scanning.take().or_else(|| self.begin_scan()) else {
            return Ok(());
        };
        for _ in 0..BLOCKS_OF_A_STEP {
            if !self.scan_one(&mut scan)? {
                self.end_scan(&scan);
                return Ok(());
            }
        }
        self.scanning = Some(scan);
        Ok(())
    }

    /// A new scan, unless there is nothing to find.
    fn begin_scan(&mut self) -> Option<Scan> {
        self.requests_since_scan = 0;
        self.counters.scans += 1;
        (self.options.similarity != Similarity::Nothing).then(|| Scan {
            stage: Stage::Former(self.former_references()),
            chosen: Vec::new(),
        })
    }

    /// Does what a scan does with one block, or goes on to its next stage; false at its end.
    fn scan_one(&mut self, scan: &mut Scan) -> Result<bool, ArrayError> {
        match &mut scan.stage {
            Stage::Former(blocks) => match blocks.pop() {
                Some(block) => self.give_data_block(block)?,
                None => scan.stage = Stage::Learn(self.unknown_signatures()),
            },
            Stage::Learn(unknown) => match unknown.pop() {
                Some((id, data)) => self.learn_signature(id, data),
                None => scan.stage = Stage::Choose(Box::new(self.choice())),
            },
            Stage::Choose(choice) => match choice.independents.next() {
                Some(candidate) => {
                    let chosen = self.choose(choice, &candidate)?;
                    scan.chosen.extend(chosen);
                }
                None if !choice.froze_bases => {
                    choice.froze_bases = true;
                    self.freeze_bases_on_fast_alone()?;
                }
                None => match choice.associates.next() {
                    Some(candidate) => self.relink(choice, &candidate)?,
                    None => return Ok(false),
                },
            },
        }
        Ok(true)
    }

    fn end_scan(&mut self, scan: &Scan) {
        let found = scan.chosen.iter();
        let found = found.filter(|&&data| self.pool.users(data).is_base());
        self.counters.scan_references += found.count() as u64;
        if self.options.halve_heatmap {
            self.heatmap.halve();
        }
    }

    /// The blocks among which references and associates are looked for.
    fn choice(&self) -> Choice {
        let Candidates {
            references,
            independents,
            associates,
        } = self.candidates();
        Choice {
            first_new: references.data.len(),
            others: Others::of(
                &independents,
                self.uses_sketches(),
                self.options.similar_positions,
            ),
            references,
            independents: independents.into_iter(),
            rank: 0,
            froze_bases: false,
            associates: associates.into_iter(),
        }
    }

    /// The turn of an independent: it becomes an associate, or a reference if another one resembles it, which is
    /// answered.
    fn choose(
        &mut self,
        choice: &mut Choice,
        candidate: &Candidate,
    ) -> Result<Option<DataBlock>, ArrayError> {
        let rank = choice.rank;
        choice.rank += 1;
        let Some(block) = candidate.block else {
            return Ok(None);
        };
        choice.others.pass(candidate);
        let bases = choice.references.best(candidate, 0, self.options.tried);
        if self.join(block, &bases)? || !choice.others.has_one_like(candidate, rank) {
            return Ok(None);
        }
        let data = self.become_base(block)?;
        if let Some(data) = data {
            choice.references.add(candidate, data);
        }
        Ok(data)
    }

    /// The virtual blocks at the head of the list that a scan looks at. What is frozen and not on the fast medium is
    /// left alone, as all content is that only the slow one has.
    fn candidates(&self) -> Candidates {
        let mut found: Vec<(Candidate, bool)> = Vec::new();
        let mut associates = Vec::new();
        for (id, v) in self.blocks.newest_first().take(self.options.scan_blocks) {
            let (Some(signature), false) = (v.signature, self.is_on_slow(v.data)) else {
                continue;
            };
            let candidate = Candidate {
                block: v.block,
                data: v.data,
                signature,
                sketch: v.sketch,
                popularity: self.heatmap.popularity(&signature.0),
            };
            match self.base_of(id) {
                Some(_) => associates.push(candidate),
                None => found.push((candidate, self.is_reference(id))),
            }
        }
        // Stable: of equally popular blocks the one accessed later comes first.
        found.sort_by_key(|(candidate, _)| std::cmp::Reverse(candidate.popularity));
        let index = self
            .uses_sketches()
            .then(|| SimilarIndex::new(self.pool.slots()));
        let mut references = References {
            data: Vec::new(),
            signatures: Alike::new(self.options.similar_positions),
            index,
        };
        let mut independents = Vec::new();
        for (candidate, is_reference) in found {
            match candidate.data {
                Some(data) if is_reference => references.add(&candidate, data),
                _ => independents.push(candidate),
            }
        }
        Candidates {
            references,
            independents,
            associates,
        }
    }

    /// Data blocks of virtual blocks at the head of the list whose signature is not known yet, the newest last.
    fn unknown_signatures(&self) -> Vec<(Id, DataBlock)> {
        let head = self.blocks.newest_first().take(self.options.scan_blocks);
        let unknown = head
            .filter(|(_, found)| found.signature.is_none() && !self.is_on_slow(found.data))
            .filter_map(|(id, found)| Some((id, found.data?)));
        let mut unknown: Vec<(Id, DataBlock)> = unknown.collect();
        unknown.reverse();
        unknown
    }

    /// Reads a data block whose signature is not known, if the virtual block still has it.
    fn learn_signature(&mut self, id: Id, data: DataBlock) {
        let is_held = self.pool.users(data).holder == Some(id) && !self.is_on_slow(Some(data));
        if !is_held || self.blocks.get(id).signature.is_some() {
            return;
        }
        if let Ok(page) = self.read_data(data) {
            let (signature, sketch) = self.signatures_of(&page);
            let found = self.blocks.get_mut(id);
            (found.signature, found.sketch) = (Some(signature), sketch);
        }
    }

    /// Makes an independent an associate of one of these data blocks, if its delta is short enough, or lets it be
    /// compressed, if that is shorter. Content that only the slow medium has, and not RAM, is left alone.
    fn join(&mut self, block: ArrayBlock, bases: &[DataBlock]) -> Result<bool, ArrayError> {
        if bases.is_empty() {
            return Ok(false);
        }
        self.make_ready()?;
        let Some(id) = self.independent(block) else {
            return Ok(false);
        };
        let own = self.blocks.get(id).data;
        let is_stored = self.blocks.get(id).content == Content::Stored;
        if is_stored && self.ram.get(block).is_none() || self.is_on_slow(own) {
            return Ok(false);
        }
        let Some((page, form, bytes)) = self.shortest(id, bases, own) else {
            return Ok(false);
        };
        let names_slot =
            self.blocks.get(id).data.is_some() && self.place_of(id).own_data().is_some();
        let is_recorded = names_slot || self.blocks.get(id).unrecorded > 0;
        let may_be = !is_recorded || self.may_record_as(form);
        if !may_be || !self.hold_encoded(id, &page, form, &bytes) {
            return Ok(false);
        }
        self.give_up_unused_data(id);
        if is_recorded {
            self.must_record(id);
        }
        self.counters.scan_associates += u64::from(matches!(form, Form::Delta(_)));
        Ok(true)
    }

    /// An associate that resembles a new reference more than its own becomes its associate, if the delta is shorter
    /// then.
    fn relink(&mut self, choice: &mut Choice, candidate: &Candidate) -> Result<(), ArrayError> {
        let (first_new, tried) = (choice.first_new, self.options.tried);
        let bases = choice.references.best(candidate, first_new, tried);
        match candidate.block {
            Some(block) if !bases.is_empty() => self.relink_one(block, candidate, &bases),
            _ => Ok(()),
        }
    }

    fn relink_one(
        &mut self,
        block: ArrayBlock,
        candidate: &Candidate,
        bases: &[DataBlock],
    ) -> Result<(), ArrayError> {
        self.make_ready()?;
        let Some(id) = self.blocks.find(block) else {
            return Ok(());
        };
        let (Some(old), Content::Held(_, present)) =
            (self.base_of(id), self.blocks.get(id).content)
        else {
            return Ok(());
        };
        if self.is_on_slow(Some(old)) {
            return Ok(());
        }
        let resembles = |base| {
            let holder = self.pool.users(base).holder;
            let like = |id| self.likeness(id, &candidate.signature, candidate.sketch.as_ref());
            holder.map_or(0, like)
        };
        let than = resembles(old);
        let better = bases.iter().copied().filter(|&base| resembles(base) > than);
        let better: Vec<DataBlock> = better.collect();
        if let Some((page, form @ Form::Delta(_), bytes)) = self.shortest(id, &better, Some(old))
            && bytes.len() < present.bytes()
            && self.may_record_as(form)
            && self.hold_encoded(id, &page, form, &bytes)
        {
            self.must_record(id);
            self.counters.relinked += 1;
        }
        Ok(())
    }

    /// The content of a virtual block with its shortest encoding from data blocks on the fast medium that somebody
    /// holds, but for one.
    fn shortest(
        &mut self,
        id: Id,
        bases: &[DataBlock],
        but: Option<DataBlock>,
    ) -> Option<(Page, Form, Vec<u8>)> {
        let mut bases = bases.to_vec();
        bases.retain(|&base| {
            Some(base) != but
                && !self.is_on_slow(Some(base))
                && self.pool.users(base).holder.is_some()
        });
        if bases.is_empty() {
            return None;
        }
        let page = self.present_of(id).ok()?;
        let (form, bytes) = self.encode(&page, &bases)?;
        Some((page, form, bytes))
    }

    /// Lets a virtual block hold the encoded content in RAM, if there is room, and its reference be ahead of it.
    fn hold_encoded(&mut self, id: Id, page: &Page, form: Form, bytes: &[u8]) -> bool {
        let Some(chain) = self.segments.store(bytes) else {
            return false;
        };
        self.set_content(id, Content::Held(form, chain), crc_of(page));
        let base = self.base_of(id);
        let holder = base.and_then(|base| self.pool.users(base).holder);
        if let Some(holder) = holder.filter(|&holder| !self.blocks.is_newer(holder, id)) {
            self.blocks.touch(holder);
        }
        true
    }

    /// The data block of an independent, which others' deltas may be based on. Content that is in RAM gets one.
    fn become_base(&mut self, block: ArrayBlock) -> Result<Option<DataBlock>, ArrayError> {
        self.make_ready()?;
        let Some(id) = self.independent(block) else {
            return Ok(None);
        };
        match self.blocks.get(id).content {
            Content::Slot => {
                let data = self.blocks.get(id).data;
                Ok(data.filter(|&data| self.pool.is_resident(data)))
            }
            Content::Stored if self.ram.get(block).is_none() => Ok(None),
            Content::Stored | Content::Held(..) => self.move_to_data(id),
        }
    }

    /// Blocks that were references, lost their last associate and were written meanwhile, the newest last.
    fn former_references(&self) -> Vec<ArrayBlock> {
        let head = self.blocks.newest_first().take(self.options.scan_blocks);
        let former = head.filter(|(id, found)| {
            let is_own = matches!(found.content, Content::Held(Form::Delta(base), _) if found.data == Some(base));
            is_own && !self.is_reference(*id)
        });
        let mut former: Vec<ArrayBlock> = former.filter_map(|(_, found)| found.block).collect();
        former.reverse();
        former
    }

    /// Gives a block that was a reference a data block with its content.
    fn give_data_block(&mut self, block: ArrayBlock) -> Result<(), ArrayError> {
        self.make_ready()?;
        if let Some(id) = self.independent(block)
            && matches!(
                self.blocks.get(id).content,
                Content::Held(Form::Delta(_), _)
            )
        {
            self.move_to_data(id)?;
        }
        Ok(())
    }

    /// Moves content of an independent from RAM to a data block; none if it cannot be read or none is free, or if that
    /// would have to be recorded and must not be.
    fn move_to_data(&mut self, id: Id) -> Result<Option<DataBlock>, ArrayError> {
        let names_slot = self.place_of(id).own_data().is_some();
        let is_recorded = names_slot || self.blocks.get(id).unrecorded > 0;
        if is_recorded && self.options.mode == Mode::WriteThrough {
            return Ok(None);
        }
        let Ok(page) = self.present_of(id) else {
            return Ok(None);
        };
        let Some(data) = self.write_data(&page)? else {
            return Ok(None);
        };
        self.set_content(id, Content::Stored, 0);
        self.give_up_data(id);
        self.hold_data(id, data);
        self.set_content(id, Content::Slot, crc_of(&page));
        let (signature, sketch) = self.signatures_of(&page);
        let found = self.blocks.get_mut(id);
        (found.signature, found.sketch) = (Some(signature), sketch);
        if is_recorded {
            self.must_record(id);
        }
        Ok(Some(data))
    }

    /// Whether a virtual block has a data block and it is not on the fast medium.
    fn is_on_slow(&self, data: Option<DataBlock>) -> bool {
        data.is_some_and(|data| !self.pool.is_resident(data))
    }

    /// The virtual block of a block, if it is independent.
    fn independent(&self, block: ArrayBlock) -> Option<Id> {
        let id = self.blocks.find(block)?;
        let is_independent = !self.is_reference(id) && self.base_of(id).is_none();
        is_independent.then_some(id)
    }
}

/// Whether a later independent of a scan resembles one.
struct Others {
    /// With sketches: how many of those not passed yet have a super-feature, by its position and value.
    features: Option<HashMap<(usize, u32), u32>>,
    /// Without: the signatures by rank.
    signatures: Alike,
}

impl Others {
    fn of(independents: &[Candidate], uses_sketches: bool, least_shared: u32) -> Self {
        let mut signatures = Alike::new(least_shared);
        let features = uses_sketches.then(|| {
            let mut features = HashMap::new();
            for sketch in independents.iter().filter_map(|candidate| candidate.sketch) {
                for feature in sketch.0.into_iter().enumerate() {
                    *features.entry(feature).or_insert(0) += 1;
                }
            }
            features
        });
        if !uses_sketches {
            for candidate in independents {
                signatures.push(candidate.signature);
            }
        }
        Others {
            features,
            signatures,
        }
    }

    /// Notes that a candidate had its turn.
    fn pass(&mut self, candidate: &Candidate) {
        if let (Some(features), Some(sketch)) = (&mut self.features, candidate.sketch) {
            for feature in sketch.0.into_iter().enumerate() {
                features.entry(feature).and_modify(|count| *count -= 1);
            }
        }
    }

    fn has_one_like(&mut self, candidate: &Candidate, rank: usize) -> bool {
        match (&self.features, candidate.sketch) {
            (Some(features), Some(sketch)) => {
                let mut own = sketch.0.into_iter().enumerate();
                own.any(|feature| features.get(&feature).is_some_and(|&count| count > 0))
            }
            (Some(_), None) => false,
            (None, _) => self.signatures.has_any(&candidate.signature, rank + 1),
        }
    }
}
