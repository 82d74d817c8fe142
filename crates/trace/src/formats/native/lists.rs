//! List columns: a record has either no list, or one with an element for each of its chunks.

use parquet::column::reader::ColumnReader;

use super::PRESENT;
use crate::record::{NO_CONTENT, chunks};

/// A list column of the open row group, with buffers that keep their memory.
#[derive(Default)]
pub(super) struct Lists {
    /// The elements decoded last.
    pub(super) elements: Vec<i32>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

/// A record that is not as it should be: its index in the batch, and what is wrong.
pub(super) type Misfit = (usize, String);

impl Lists {
    /// Decodes the levels and elements of the next `records` records.
    pub(super) fn decode(
        &mut self,
        column: &mut ColumnReader,
        records: usize,
    ) -> Result<(), String> {
        let ColumnReader::Int32ColumnReader(reader) = column else {
            return Err("a column has another type".to_owned());
        };
        self.elements.clear();
        self.definition.clear();
        self.repetition.clear();
        let (definition, repetition) = (&mut self.definition, &mut self.repetition);
        reader
            .read_records(
                records,
                Some(definition),
                Some(repetition),
                &mut self.elements,
            )
            .map_err(|e| e.to_string())?;
        Ok(())
    }

    /// Appends to `first` where in `elements` the list of each record begins, or [`NO_CONTENT`].
    ///
    /// # Errors
    /// A list that has not one element a chunk; for records that are not there the index behind the
    /// last one.
    pub(super) fn place(&self, lengths: &[u64], first: &mut Vec<u32>) -> Result<(), Misfit> {
        let (mut level, mut element) = (0, 0);
        for (index, &length) in lengths.iter().enumerate() {
            if self.definition.get(level) == Some(&0) {
                first.push(NO_CONTENT);
                level += 1;
                continue;
            }
            let count = chunks(length) as usize;
            if !self.is_list(level, count) {
                return Err((index, self.misfit(level, length)));
            }
            first.push(element as u32);
            level += count;
            element += count;
        }
        match level == self.definition.len() && element == self.elements.len() {
            true => Ok(()),
            false => Err((
                lengths.len(),
                "it has more records than the other columns".to_owned(),
            )),
        }
    }

    /// Whether a list of `count` elements stands at a level. A level within it that is no element makes
    /// the elements fewer than the lists say, which is noticed at the end.
    #[inline(always)]
    fn is_list(&self, level: usize, count: usize) -> bool {
        let Some(list) = self.repetition.get(level..level.saturating_add(count)) else {
            return false;
        };
        let ends = self.repetition.get(level + count).is_none_or(|&r| r == 0);
        count > 0
            && self.definition.get(level) == Some(&PRESENT)
            && list[0] == 0
            && !list[1..].contains(&0)
            && ends
    }

    fn misfit(&self, level: usize, length: u64) -> String {
        let Some(levels) = self.definition.get(level..).filter(|rest| !rest.is_empty()) else {
            return "the record is not in it".to_owned();
        };
        let rest = &self.repetition[level + 1..];
        let list = 1 + rest.iter().take_while(|&&r| r != 0).count();
        let found = levels[..list].iter().filter(|&&level| level == PRESENT);
        match chunks(length) {
            0 => "it has a list for a flush, expected none".to_owned(),
            wanted => format!(
                "it has {} elements for {length} bytes, expected {wanted}",
                found.count()
            ),
        }
    }
}
