//! Victims sealed before the window of old versions begins: they are preferred, and any will do without them.

use crate::common;

use common::policies::VERSIONS;
use common::values::{Lengths, Page, V};
use common::{Medium, medium};
use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::record::Op;
use flashlore_flash::{BlockId, Geometry, Lpn, Tag, When};
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::{ContentFtl, FtlOptions, Policies, Unhashed};

type Ftl = ContentFtl<V, Medium<Page>, NoCensus, Resident, Lengths, Past>;

const PAGES: u32 = 8;

/// A device with blocks of eight pages.
fn device(sealed_before_window: bool) -> Ftl {
    let geometry = Geometry::single_plane(24, PAGES, 4096).unwrap();
    let mut options = FtlOptions::new(80);
    options.collect.sealed_before_window = sealed_before_window;
    let policies = Policies {
        dedup: DedupOptions {
            index_entries: Some(0),
            fingerprint_bits: 64,
            verify: false,
            bypass: None,
            out_of_line: false,
        },
        encoding: None,
        versions: Some(VERSIONS),
        encoder: Lengths {
            least: 1,
            most: 1,
            alone: 0,
        },
    };
    let medium = medium(&geometry);
    let mut ftl = ContentFtl::with_policies(medium, options, policies, NoCensus, Resident).unwrap();
    ftl.begin_history();
    ftl
}

fn write(ftl: &mut Ftl, at: u64, lpn: Lpn) {
    ftl.advance(at).unwrap();
    ftl.set_instant(at);
    let value = V(at as u32 * 100 + lpn.0);
    ftl.write_unhashed(When::now(at), lpn, value, Unhashed::Off, Tag::NONE)
        .unwrap();
}

/// Fills blocks 0 to 4 at the instants 1 to 5; of the first three dies a page each, of the others seven
/// pages each, and their versions are forgotten, as are those of all that is written later: most blocks hold
/// nothing in the end. Answers what is erased first when the device becomes full.
fn first_victim(sealed_before_window: bool, window: u64) -> BlockId {
    let mut ftl = device(sealed_before_window);
    for block in 0..5 {
        for page in 0..PAGES {
            write(&mut ftl, u64::from(block) + 1, Lpn(block * PAGES + page));
        }
    }
    for block in 0..5 {
        let dying = if block < 3 { 1 } else { 7 };
        for page in 0..dying {
            write(&mut ftl, 10, Lpn(block * PAGES + page));
        }
    }
    ftl.purge(Lpn(0)..Lpn(40));
    ftl.advance_window(window);
    ftl.core_mut().flash_mut().take();
    for lpn in 0.. {
        write(&mut ftl, 20 + u64::from(lpn), Lpn(40 + lpn % 40));
        ftl.purge(Lpn(40)..Lpn(80));
        let ops = ftl.core_mut().flash_mut().take();
        let erased = ops.iter().find_map(|op| match op {
            Op::Erase { block } => Some(*block),
            _ => None,
        });
        ftl.check().unwrap();
        if let Some(block) = erased {
            return block;
        }
    }
    unreachable!("the device has an end")
}

#[test]
fn a_block_sealed_before_the_window_goes_before_emptier_ones() {
    // Without the filter the emptiest goes, whenever it was sealed.
    assert!(first_victim(false, 3).0 > 4);
    // Before 3 the first two were sealed, the one at 3 was not.
    assert!(first_victim(true, 3).0 < 2);
    // All five were: the emptiest of them.
    assert!([3, 4].contains(&first_victim(true, 9).0));
}

#[test]
fn any_block_goes_where_none_was_sealed_before_the_window() {
    assert!(first_victim(true, 1).0 > 4);
}
