//! A store as its last durable root has it: read through, page by page, without a cache. Nothing of it is written.
//!
//! What lies on a medium is shown, checked and taken over with it. A page that cannot be read is shown as such: whoever looks
//! may pass over it. Counting pointers takes two bytes a slot; a page that several tables share is looked at once.

use std::ops::Range;

use flashlore_content::VolumeKey;
use flashlore_medium::{AlignedBuf, Medium};

use crate::address::{Node, Pointer, Row, Shape, Slot, TableId};
use crate::area::Area;
use crate::error::MetadataError;
use crate::fetch::Fetch;
use crate::page::{FANOUT, HEADER, PAGE_BYTES, pointers};
use crate::root::{Root, RootTable};
use crate::space::Space;

/// A store that nobody changes.
pub struct Stored<'a> {
    medium: &'a dyn Medium,
    area: Area,
    key: VolumeKey,
    root: Root,
}

/// A page of the tree of a table, where it lies, and its bytes.
pub struct StoredPage<'a> {
    /// Which page it is.
    pub node: Node,
    /// Where it lies.
    pub slot: Slot,
    bytes: &'a [u8],
}

/// A page of the tree of a table that cannot be read, nor what is below it.
pub struct UnreadPage {
    /// Which page it is.
    pub node: Node,
    /// Why.
    pub error: MetadataError,
}

impl From<UnreadPage> for MetadataError {
    fn from(page: UnreadPage) -> Self {
        page.error
    }
}

impl StoredPage<'_> {
    /// The number of its first row, of a leaf of a table of this shape.
    pub fn first_row(&self, shape: &Shape) -> Row {
        Row(self.node.index * shape.rows_per_page())
    }

    /// Its rows one after another, of a leaf.
    pub fn rows(&self) -> &[u8] {
        &self.bytes[HEADER..]
    }
}

impl<'a> Stored<'a> {
    /// The last root that holds.
    ///
    /// # Errors
    /// Neither does, or the medium failed.
    pub fn open(medium: &'a dyn Medium, area: Area, key: VolumeKey) -> Result<Self, MetadataError> {
        let [even, odd] = Stored::roots(medium, area, key)?;
        let newest = even.into_iter().chain(odd).max_by_key(Stored::commit);
        newest.ok_or_else(|| MetadataError::Root("neither root of the tables holds".to_string()))
    }

    /// What either root says, if it holds: that of the even commits first.
    ///
    /// # Errors
    /// The medium failed.
    pub fn roots(
        medium: &'a dyn Medium,
        area: Area,
        key: VolumeKey,
    ) -> Result<[Option<Self>; 2], MetadataError> {
        let mut bytes = AlignedBuf::zeroed(area.root_bytes());
        let mut read = |parity| -> Result<Option<Self>, MetadataError> {
            medium.read(area.root(parity), &mut bytes)?;
            let root = Root::decode(&area, &key, parity, &bytes);
            Ok(root.map(|root| Stored {
                medium,
                area,
                key,
                root,
            }))
        };
        Ok([read(0)?, read(1)?])
    }

    /// The number of the commit.
    pub fn commit(&self) -> u64 {
        self.root.commit
    }

    /// What the user put into the root.
    pub fn user(&self) -> &[u8] {
        &self.root.user
    }

    /// The tables: kind and shape.
    pub fn tables(&self) -> impl Iterator<Item = (u8, Shape)> + '_ {
        self.root
            .tables
            .iter()
            .map(|table| (table.kind, table.shape))
    }

    /// Where the pages of counts lie that the root names.
    pub fn counts_at(&self) -> impl Iterator<Item = u64> + '_ {
        let places = (0..).zip(&self.root.counts);
        places.filter_map(|(number, place)| Some(self.area.counts(number, place.copy()?)))
    }

    /// Whether the pages of counts hold that the root names.
    ///
    /// # Errors
    /// One does not, or the medium failed.
    pub fn check_counts(&self) -> Result<(), MetadataError> {
        self.space().map(drop)
    }

    /// The root, and the counts of slots that it names.
    pub(crate) fn into_parts(self) -> Result<(Root, Space), MetadataError> {
        let space = self.space()?;
        Ok((self.root, space))
    }

    fn space(&self) -> Result<Space, MetadataError> {
        let mut space = Space::new(self.area.slots);
        let mut page = AlignedBuf::zeroed(PAGE_BYTES);
        for (number, &place) in (0..).zip(&self.root.counts) {
            if let Some(copy) = place.copy() {
                let at = self.area.counts(number, copy);
                self.medium.read(at, &mut page)?;
                let restored = space.restore(number, place, at, &self.key, &page);
                restored.map_err(MetadataError::Root)?;
            }
        }
        Ok(space)
    }

    /// Reads the pages of a table that were ever written and have any of these rows, each before those below it, in the order
    /// of the rows; one that cannot be read is shown as that, and passed over unless `take` ends it.
    ///
    /// # Errors
    /// What `take` answers.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn each_page<E>(
        &self,
        table: TableId,
        rows: Range<Row>,
        take: &mut impl FnMut(Result<&StoredPage<'_>, UnreadPage>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.walk(table, &rows, &mut |_, page| take(page).map(|()| true))
    }

    /// Reads the pages above the rows of a table: whoever changes a row needs those on its way, whichever row that is.
    ///
    /// # Errors
    /// One cannot be read.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn check_above(&self, table: TableId) -> Result<(), MetadataError> {
        if self.root.tables[table.index()].shape.top() == 0 {
            return Ok(());
        }
        let all = Row(0)..Row(u32::MAX);
        self.walk(table, &all, &mut |_, page| Ok(page?.node.level > 1))
    }

    /// Shows pages, or that they cannot be read, each with its slot, and goes on below a page where `take` says so.
    fn walk<E>(
        &self,
        table: TableId,
        rows: &Range<Row>,
        take: &mut impl FnMut(Slot, Result<&StoredPage<'_>, UnreadPage>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let RootTable { shape, top, .. } = self.root.tables[table.index()];
        let node = Node {
            table,
            level: shape.top(),
            index: 0,
        };
        match top.is_some() {
            true => self.walk_from(node, top, rows, take),
            false => Ok(()),
        }
    }

    fn walk_from<E>(
        &self,
        node: Node,
        pointer: Pointer,
        rows: &Range<Row>,
        take: &mut impl FnMut(Slot, Result<&StoredPage<'_>, UnreadPage>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let of_node = node.rows(&self.root.tables[node.table.index()].shape);
        if u64::from(rows.start) >= of_node.end || u64::from(rows.end) <= of_node.start {
            return Ok(());
        }
        let fetch = Fetch {
            node,
            kind: self.root.tables[node.table.index()].kind,
            pointer,
        };
        let slot = pointer.slot;
        let page = match fetch.carry_out(self.medium, &self.area, &self.key) {
            Ok(page) => page,
            Err(error) => return take(slot, Err(UnreadPage { node, error })).map(drop),
        };
        let bytes = &page.bytes;
        let goes_on = take(slot, Ok(&StoredPage { node, slot, bytes }))?;
        if node.level == 0 || !goes_on {
            return Ok(());
        }
        for (at, child) in pointers(&page.bytes) {
            let below = Node {
                level: node.level - 1,
                index: node.index * FANOUT + at as u32,
                ..node
            };
            self.walk_from(below, child, rows, take)?;
        }
        Ok(())
    }

    /// Counts all pointers anew: a slot must have the count that it notes. Each page is shown once, and one that cannot be
    /// read as often as a page or a root leads to it; what is below it is not counted.
    ///
    /// # Errors
    /// A page of counts does not hold, or a sentence that names a slot whose count is wrong.
    pub fn recount(
        &self,
        mut take: impl FnMut(Result<&StoredPage<'_>, UnreadPage>),
    ) -> Result<(), MetadataError> {
        let mut counts = vec![0u16; self.area.slots as usize];
        let mut is_whole = true;
        for table in (0..self.root.tables.len() as u32).map(TableId) {
            let all = Row(0)..Row(u32::MAX);
            self.walk(table, &all, &mut |slot, page| {
                // A pointer may name a slot that there is not.
                let is_first = counts.get_mut(slot.index()).is_none_or(|count| {
                    *count = count.saturating_add(1);
                    *count == 1
                });
                is_whole &= page.as_ref().err().is_none_or(|page| page.node.level == 0);
                if is_first || page.is_err() {
                    take(page);
                }
                Ok::<_, MetadataError>(is_first)
            })?;
        }
        let noted = self.space()?;
        for (slot, &found) in (0..).map(Slot).zip(&counts) {
            let noted = noted.count(slot);
            // Below a page that cannot be read there may be more.
            if found > noted || (is_whole && found < noted) {
                return Err(MetadataError::Root(format!(
                    "slot {slot} of the tables notes {noted} pointers to it, counted are {found}"
                )));
            }
        }
        Ok(())
    }
}
