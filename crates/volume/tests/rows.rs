//! Rows of the tables of a closed volume, found and changed on its medium.

use flashlore_medium::MemoryMedium;
use flashlore_metadata::{MetadataError, Row, Stored, StoredPage, UnreadPage};
use flashlore_volume::Identity;
use flashlore_volume::format::{Areas, Table};

use crate::exercise::seal_store;

/// Where a row of a table lies, if it was ever written.
pub fn row_at(bytes: &[u8], id: &Identity, table: Table, row: u32) -> Option<usize> {
    let areas = Areas::new(id).unwrap();
    let image = MemoryMedium::from_bytes(bytes.to_vec());
    let stored = Stored::open(&image, areas.store, id.key).unwrap();
    let (mut found, shape) = (None, table.shape(id));
    let mut note = |page: Result<&StoredPage<'_>, UnreadPage>| {
        let page = page?;
        if page.node.level == 0 {
            let at = areas.store.slot(page.slot) as usize + 32;
            let within = (row - page.first_row(&shape).0) as usize;
            found = Some(at + within * usize::from(shape.row_bytes));
        }
        Ok::<_, MetadataError>(())
    };
    let rows = Row(row)..Row(row + 1);
    stored.each_page(table.id(), rows, &mut note).unwrap();
    found
}

/// Changes bytes of a closed volume's tables, and makes all checks hold again.
pub fn resealed(id: &Identity, mut bytes: Vec<u8>, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    change(&mut bytes);
    seal_store(&mut bytes, &Areas::new(id).unwrap().store, &id.key);
    bytes
}
