//! The scan: which of the blocks accessed last become references, and which their associates.
//!
//! The paper says when a scan runs, what it looks at and that the most popular blocks become references. The rest
//! is chosen here (spec 3): in the order of popularity, a block joins the reference it resembles most if the
//! delta is short; else it becomes a reference if another block that comes later resembles it.

use std::collections::HashMap;

use flashlore_content::{SimilarIndex, Sketch};

use crate::error::ArrayError;
use crate::icash::alike::Alike;
use crate::icash::blocks::{Content, Form, Id};
use crate::icash::content::crc_of;
use crate::icash::parameters::Similarity;
use crate::icash::place::DataBlock;
use crate::icash::signature::Signature;
use crate::icash::state::ICash;

/// A virtual block that a scan looks at.
#[derive(Debug, Clone)]
struct Candidate {
    /// The block; none for a reference without an address.
    block: Option<u32>,
    data: Option<DataBlock>,
    signature: Signature,
    sketch: Option<Sketch>,
    popularity: u64,
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

    /// The one that a block resembles most; of equals the most popular.
    fn best(&mut self, candidate: &Candidate) -> Option<DataBlock> {
        let best = match &self.index {
            Some(index) => {
                let best = candidate
                    .sketch
                    .and_then(|sketch| index.find(&sketch, |_| true));
                best.map(|number| number as usize)
            }
            None => self.signatures.best(&candidate.signature, 0),
        };
        best.map(|number| self.data[number])
    }
}

impl ICash {
    pub(super) fn scan(&mut self) -> Result<(), ArrayError> {
        self.accesses_since_scan = 0;
        self.counters.scans += 1;
        if self.options.similarity == Similarity::Nothing {
            return Ok(());
        }
        self.give_former_references_data_blocks()?;
        let (mut references, independents) = self.candidates();
        let mut others = Others::of(
            &independents,
            self.uses_sketches(),
            self.options.similar_positions,
        );
        let mut chosen = Vec::new();
        for (rank, candidate) in independents.iter().enumerate() {
            let Some(block) = candidate.block else {
                continue;
            };
            others.pass(candidate);
            let base = references.best(candidate);
            if let Some(base) = base
                && self.join(block, base)?
            {
                continue;
            }
            if others.has_one_like(candidate, rank)
                && let Some(data) = self.become_base(block)?
            {
                references.add(candidate, data);
                chosen.push(data);
            }
        }
        let found = chosen
            .iter()
            .filter(|&&data| self.pool.users(data).is_base());
        self.counters.scan_references += found.count() as u64;
        if self.options.halve_heatmap {
            self.heatmap.halve();
        }
        Ok(())
    }

    /// The references and, most popular first, the independents among the virtual blocks at the head of the list. What
    /// is frozen and not on the fast medium is left alone, as all content is that only the slow one has.
    fn candidates(&mut self) -> (References, Vec<Candidate>) {
        self.learn_signatures();
        let mut found: Vec<(Candidate, bool)> = Vec::new();
        for (id, v) in self.blocks.newest_first().take(self.options.scan_blocks) {
            let is_passed = self.base_of(id).is_some() || self.is_on_slow(v.data);
            let (Some(signature), false) = (v.signature, is_passed) else {
                continue;
            };
            let candidate = Candidate {
                block: v.block,
                data: v.data,
                signature,
                sketch: v.sketch,
                popularity: self.heatmap.popularity(&signature.0),
            };
            found.push((candidate, self.is_reference(id)));
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
        (references, independents)
    }

    /// Reads the data blocks of virtual blocks at the head of the list whose signature is not known yet.
    fn learn_signatures(&mut self) {
        let head = self.blocks.newest_first().take(self.options.scan_blocks);
        let unknown: Vec<(Id, DataBlock)> = head
            .filter(|(_, found)| found.signature.is_none() && !self.is_on_slow(found.data))
            .filter_map(|(id, found)| Some((id, found.data?)))
            .collect();
        for (id, data) in unknown {
            if let Ok(page) = self.read_data(data) {
                let (signature, sketch) = self.signatures_of(&page);
                let found = self.blocks.get_mut(id);
                (found.signature, found.sketch) = (Some(signature), sketch);
            }
        }
    }

    /// Makes an independent an associate, if its delta from a data block is short enough, or lets it be
    /// compressed, if that is shorter. Content that only the slow medium has is left alone.
    fn join(&mut self, block: u32, base: DataBlock) -> Result<bool, ArrayError> {
        self.make_ready()?;
        let Some(id) = self
            .independent(block)
            .filter(|&id| self.blocks.get(id).data != Some(base))
        else {
            return Ok(false);
        };
        let is_slow = self.blocks.get(id).content == Content::Stored
            || self.is_on_slow(self.blocks.get(id).data)
            || self.is_on_slow(Some(base));
        if is_slow || self.pool.users(base).holder.is_none() {
            return Ok(false);
        }
        let Ok(page) = self.present_of(id) else {
            return Ok(false);
        };
        let Some((form, bytes)) = self.encode(&page, Some(base)) else {
            return Ok(false);
        };
        let Some(chain) = self.segments.store(&bytes) else {
            return Ok(false);
        };
        self.set_content(id, Content::Held(form, chain), crc_of(&page));
        let names_slot =
            self.blocks.get(id).data.is_some() && self.place_of(id).own_data().is_some();
        self.give_up_unused_data(id);
        if names_slot || self.blocks.get(id).unrecorded > 0 {
            self.must_record(id);
        }
        let holder = self
            .base_of(id)
            .and_then(|base| self.pool.users(base).holder);
        if let Some(holder) = holder.filter(|&holder| !self.blocks.is_newer(holder, id)) {
            self.blocks.touch(holder);
        }
        self.counters.scan_associates += u64::from(form == Form::Delta(base));
        Ok(true)
    }

    /// The data block of an independent, which others' deltas may be based on. Content that is in RAM gets
    /// one.
    fn become_base(&mut self, block: u32) -> Result<Option<DataBlock>, ArrayError> {
        self.make_ready()?;
        let Some(id) = self.independent(block) else {
            return Ok(None);
        };
        match self.blocks.get(id).content {
            Content::Slot => {
                let data = self.blocks.get(id).data;
                Ok(data.filter(|&data| self.pool.is_resident(data)))
            }
            Content::Stored => Ok(None),
            Content::Held(..) => self.move_to_data(id),
        }
    }

    /// References that lost their last associate and were written meanwhile get a data block with their content.
    fn give_former_references_data_blocks(&mut self) -> Result<(), ArrayError> {
        let head = self.blocks.newest_first().take(self.options.scan_blocks);
        let former = head.filter(|(id, found)| {
            let is_own = matches!(found.content, Content::Held(Form::Delta(base), _) if found.data == Some(base));
            is_own && !self.is_reference(*id)
        });
        let former: Vec<u32> = former.filter_map(|(_, found)| found.block).collect();
        for block in former {
            self.make_ready()?;
            if let Some(id) = self.independent(block)
                && matches!(
                    self.blocks.get(id).content,
                    Content::Held(Form::Delta(_), _)
                )
            {
                self.move_to_data(id)?;
            }
        }
        Ok(())
    }

    /// Moves content of an independent from RAM to a data block; none if it cannot be read or none is free.
    fn move_to_data(&mut self, id: Id) -> Result<Option<DataBlock>, ArrayError> {
        let Ok(page) = self.present_of(id) else {
            return Ok(None);
        };
        let Some(data) = self.write_data(&page)? else {
            return Ok(None);
        };
        let names_slot = self.place_of(id).own_data().is_some();
        self.set_content(id, Content::Stored, 0);
        self.give_up_data(id);
        self.hold_data(id, data);
        self.set_content(id, Content::Slot, crc_of(&page));
        let (signature, sketch) = self.signatures_of(&page);
        let found = self.blocks.get_mut(id);
        (found.signature, found.sketch) = (Some(signature), sketch);
        if names_slot || self.blocks.get(id).unrecorded > 0 {
            self.must_record(id);
        }
        Ok(Some(data))
    }

    /// Whether a virtual block has a data block and it is not on the fast medium.
    fn is_on_slow(&self, data: Option<DataBlock>) -> bool {
        data.is_some_and(|data| !self.pool.is_resident(data))
    }

    /// The virtual block of a block, if it is independent.
    fn independent(&self, block: u32) -> Option<Id> {
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
