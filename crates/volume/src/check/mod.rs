//! Checking a volume that is not open: superblocks, roots, tables, journal, references, checksums. Nothing is written.
//!
//! The tables are gone through in passes, each for as many rows as there is memory for: what refers to them is counted, and
//! compared with what they note. Rows of the last checkpoint are read in their order, from the medium. What has happened since
//! is replayed as an opening does, within the memory that takes; the rows that differ are laid over those of the
//! checkpoint, and of all of that it is looked at once more where it lies, and read.
//!
//! | module | what it is |
//! |---|---|
//! | `subject` | the checkpoint, ranges of rows, what is told |
//! | `view` | rows of the checkpoint with what has become of them |
//! | `bits` | a bit for each handle |
//! | `named` | which objects there are |
//! | `references` | counts of objects, and free handles |
//! | `packs` | counts of packed pages, and free numbers |
//! | `history` | chains of old versions |
//! | `units` | owners of units |
//! | `data` | what lies on units |
//! | `addresses` | who needs what cannot be read |
//!
//! What an opening makes of the counts of the checkpoint is not counted anew: it is those, and what the journal
//! says. A volume of an older format has no counts, and no order in which its rows could be read: all of them are in memory.
//!
//! A page of the tables that cannot be read is told with the rows that it covers, and passed over: what does not follow from
//! the others alone is not compared then.
//!
//! Invariants: what an opening refuses is refused here; what is told does not depend on how long the ranges are, but that of the
//! history it is what is wrong in the first range of pages in which anything is.

use std::sync::Arc;

use flashlore_content::{Digest, DigestTag};
use flashlore_flash::Owner;
use flashlore_ftl::mapping::packs::PackTallies;
use flashlore_ftl::mapping::tallies::Tallies;
use flashlore_medium::{AlignedBuf, Medium};
use flashlore_metadata::{StoredPage, UnreadPage};
use rustc_hash::FxHashSet;

use crate::error::VolumeError;
use crate::findings::Finding;
use crate::format::superblock::{FIRST_WITH_STORE, SUPERBLOCK_BYTES, VERSION};
use crate::format::{Areas, Root, Superblock, Table};
use crate::image::{Image, Recovery, checkpoint, read_rows, read_with};
use crate::load::{self, MissingPages};
use crate::memory::{CheckShares, USUAL_MEMORY, least_memory_to_check};
use crate::policies::history_options;
use crate::replay::{Lost, NOWHERE};
use crate::tables::TableStore;
use crate::unit::Units;

mod addresses;
mod bits;
mod data;
mod history;
mod named;
mod packs;
mod references;
mod subject;
mod units;
mod view;

use data::{Damage, UnitReader};
use named::NamedObjects;
use packs::PackCounts;
use references::scan_bytes;
use subject::{Effort, Sentences, Subject, ranges};
use units::{Claims, Places, owners_of};
use view::{ChangedSince, RowSource, RowView};

/// The least units at a time: those of a row of valid units.
const LEAST_UNITS: u32 = 64;
/// Bytes of memory for an address of what cannot be read, or for an object that needs it.
const NEEDER_BYTES: u64 = 80;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// What an opening would replay.
    pub recovery: Recovery,
    /// Addresses that hold something, as far as the tables can be read.
    pub mapped: u64,
    /// Values stored for them and for old versions.
    pub stored: u64,
    /// Copies of the superblock that hold, of two.
    pub superblocks: u32,
    /// Stored pages that cannot be read.
    pub findings: Vec<Finding>,
    /// Things that must not be, each a sentence.
    pub errors: Vec<String>,
}

impl CheckReport {
    /// Whether everything holds.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.errors.is_empty() && self.superblocks == 2
    }
}

/// How a volume is checked.
pub struct CheckOptions<'a> {
    /// Whether every stored page is read, too.
    pub data: bool,
    /// Bytes of memory in all; what is usual for a volume if nothing is said.
    pub memory: Option<u64>,
    /// Whether ranges are as short as they can be, whatever the memory: there are many passes then.
    pub shortest_ranges: bool,
    /// Is told how much is done, of how much.
    pub progress: &'a dyn Fn(u64, u64),
}

impl Default for CheckOptions<'_> {
    fn default() -> Self {
        CheckOptions {
            data: true,
            memory: None,
            shortest_ranges: false,
            progress: &|_, _| {},
        }
    }
}

/// Checks the volume on a medium; `data` also reads every stored page.
///
/// # Errors
/// As [`check_within`].
pub fn check(medium: impl Medium + 'static, data: bool) -> Result<CheckReport, VolumeError> {
    let options = CheckOptions {
        data,
        ..CheckOptions::default()
    };
    check_within(medium, &options)
}

/// The same with so much memory.
///
/// # Errors
/// There is no volume, it could not be opened either, or the memory is too little.
pub fn check_within(
    medium: impl Medium + 'static,
    options: &CheckOptions<'_>,
) -> Result<CheckReport, VolumeError> {
    let medium: Arc<dyn Medium> = Arc::new(medium);
    let superblock = load::superblock(&medium)?;
    let at = checkpoint(&medium, &superblock)?;
    let id = &superblock.identity;
    let usual = || USUAL_MEMORY.max(least_memory_to_check(id));
    let shares = CheckShares::within(id, options.memory.unwrap_or_else(usual))?;
    let room = match options.shortest_ranges {
        true => 0,
        false => shares.ranges,
    };
    let mut image = read(&medium, superblock, at, shares.tables)?;
    let since = ChangedSince::of(&mut image.state);
    let superblocks = intact_superblocks(&medium);
    let effort = Effort::new(
        planned(&image, &since, room, options.data),
        options.progress,
    );
    let run = CheckRun {
        medium: &*medium,
        image: &image,
        since: &since,
        room,
        data: options.data,
        effort: &effort,
    };
    run.carry_out(superblocks)
}

/// What an opening finds, within the memory of one; of an older format all of it.
fn read(
    medium: &Arc<dyn Medium>,
    superblock: Superblock,
    (areas, root): (Areas, Root),
    memory: u64,
) -> Result<Image, VolumeError> {
    if superblock.identity.version < VERSION {
        return read_with(medium, superblock);
    }
    let (id, last) = (&superblock.identity, root.checkpoint);
    let tables = TableStore::open(Arc::clone(medium), id, &areas, last, memory)?;
    let mut image = read_rows(medium, superblock, (areas, root), tables.stored())?;
    // Whatever is in memory of the tables goes with it.
    image.state.history = None;
    image.tail.batches = Vec::new();
    Ok(image)
}

/// Copies of the superblock that hold and are of this volume.
fn intact_superblocks(medium: &dyn Medium) -> u32 {
    let own = load::superblock(medium).map(|own| own.identity.uuid);
    let intact = |copy: u64| {
        let mut bytes = AlignedBuf::zeroed(SUPERBLOCK_BYTES);
        medium
            .read(copy * SUPERBLOCK_BYTES as u64, &mut bytes)
            .is_ok()
            && bytes
                .first_chunk()
                .and_then(|bytes| Superblock::decode(bytes).ok())
                .is_some_and(|copy| own.as_ref().is_ok_and(|own| *own == copy.identity.uuid))
    };
    (0..2).map(|copy| u32::from(intact(copy))).sum()
}

/// A check while it runs.
struct CheckRun<'a> {
    medium: &'a dyn Medium,
    image: &'a Image,
    since: &'a ChangedSince,
    room: u64,
    data: bool,
    effort: &'a Effort<'a>,
}

/// What a pass over the units is to do besides looking at whose they are.
#[derive(Clone, Copy)]
struct UnitPass<'a> {
    /// Compare what the tables of the checkpoint note.
    compare: Option<&'a Subject<'a>>,
    /// Look at where things lie, and read it if that is asked for: it is how an opening finds it.
    is_present: bool,
}

impl CheckRun<'_> {
    fn carry_out(&self, superblocks: u32) -> Result<CheckReport, VolumeError> {
        let mut report = CheckReport {
            recovery: self.image.recovery,
            mapped: 0,
            stored: 0,
            superblocks,
            findings: Vec::new(),
            errors: Vec::new(),
        };
        let mut told = Sentences::default();
        let id = &self.image.superblock.identity;
        let missing = MissingPages::of(id);
        self.count_pointers(&missing, &mut told);
        if id.version < VERSION {
            let source = RowSource::Loaded(&self.image.state);
            self.look_at_present(source, &mut report, &mut told)?;
        } else {
            let (areas, root) = (&self.image.areas, &self.image.root);
            let rows = load::of_checkpoint(self.medium, id, areas, root)?.passing_over(&missing);
            let on = Subject {
                id,
                root,
                rows: &rows,
                room: self.room,
                effort: self.effort,
            };
            let is_present = self.since.is_nothing();
            self.look_at_checkpoint(&on, is_present, &mut report, &mut told)?;
            if !is_present {
                let source = RowSource::Checkpoint(&rows);
                self.look_at_present(source, &mut report, &mut told)?;
            }
        }
        report.errors = missing.into_sentences();
        report.errors.extend(told.into_all());
        Ok(report)
    }

    /// Counts anew how many pages and roots lead to each page of the tables, and notes those that cannot be used: before
    /// anything is compared that needs one.
    fn count_pointers(&self, missing: &MissingPages<'_>, told: &mut Sentences) {
        let id = &self.image.superblock.identity;
        if id.version < FIRST_WITH_STORE {
            return;
        }
        let note = |page: Result<&StoredPage<'_>, UnreadPage>| {
            let _ = missing.usable(page);
        };
        let rows = load::of_checkpoint(self.medium, id, &self.image.areas, &self.image.root);
        let counted = rows.and_then(|rows| rows.stored.recount(note).map_err(load::of_store));
        if let Err(error) = counted {
            told.push(error.to_string());
        }
    }

    /// Compares what the tables of the checkpoint say of each other.
    fn look_at_checkpoint(
        &self,
        on: &Subject<'_>,
        is_present: bool,
        report: &mut CheckReport,
        told: &mut Sentences,
    ) -> Result<(), VolumeError> {
        let nothing = ChangedSince::default();
        let view = RowView {
            id: on.id,
            root: on.root,
            source: RowSource::Checkpoint(on.rows),
            since: &nothing,
        };
        let pass = UnitPass {
            compare: Some(on),
            is_present,
        };
        let named = NamedObjects::in_view(&view)?;
        let counted = match &named {
            Some(named) => compare_objects(on, &view, named, told)?,
            None => Tallies {
                stored: mapped(&view, None)? as u32,
                ..Tallies::default()
            },
        };
        if on.root.tallies != counted && on.knows_all() {
            told.push(format!(
                "the root tells {:?}, counted are {counted:?}",
                on.root.tallies
            ));
        }
        self.look_at_units((&view, named.as_ref()), pass, report, told)?;
        if let Some(what) = on.not_compared() {
            told.push(what);
        }
        Ok(())
    }

    /// Looks at all rows as an opening finds them.
    fn look_at_present(
        &self,
        source: RowSource<'_>,
        report: &mut CheckReport,
        told: &mut Sentences,
    ) -> Result<(), VolumeError> {
        let view = RowView {
            id: &self.image.superblock.identity,
            root: &self.image.root,
            source,
            since: self.since,
        };
        let pass = UnitPass {
            compare: None,
            is_present: true,
        };
        let named = NamedObjects::in_view(&view)?;
        self.look_at_units((&view, named.as_ref()), pass, report, told)
    }

    fn look_at_units(
        &self,
        (view, named): (&RowView<'_>, Option<&NamedObjects>),
        pass: UnitPass<'_>,
        report: &mut CheckReport,
        told: &mut Sentences,
    ) -> Result<(), VolumeError> {
        let image = self.image;
        let reads = self.data && pass.is_present;
        let places = self.places();
        let reader = self.reader();
        let mut damage = self.lost();
        for range in unit_ranges(image, self.room, reads) {
            let places = pass.is_present.then_some(&places);
            let claims = Claims::of((view, named), places, (range, reads), told)?;
            self.effort.advance(scan_bytes(view.id, view.root));
            if let Some(on) = pass.compare {
                claims.compare(on, told)?;
            }
            if reads {
                reader.read(&claims, &mut damage, told);
            }
        }
        if !pass.is_present {
            return Ok(());
        }
        report.mapped = mapped(view, named)?;
        report.stored = named.map_or(report.mapped, |named| named.named.count().into());
        let more = damage.more;
        let room = usize::try_from(self.room / NEEDER_BYTES).unwrap_or(usize::MAX);
        let (findings, cut) = addresses::findings(view, named, damage, room.max(LEAST_NEEDERS))?;
        report.findings = findings;
        if more > 0 {
            told.push(format!(
                "{more} more stored pages or values cannot be read; they are not listed here"
            ));
        }
        if cut > 0 {
            told.push(format!(
                "{cut} times more something needs what cannot be read; the addresses are not listed here: there is too \
                 little memory"
            ));
        }
        Ok(())
    }

    /// What is nowhere any more.
    fn lost(&self) -> Damage {
        let lost = self.image.state.lost.iter();
        let units = lost
            .map(|&Lost { unit, owner, .. }| (unit, Owner::numbered(owner.0), NOWHERE.to_owned()));
        Damage {
            units: units.collect(),
            ..Damage::default()
        }
    }

    fn places(&self) -> Places<'_> {
        let state = &self.image.state;
        let moved: FxHashSet<Owner> = match self.image.superblock.identity.has_objects() {
            true => owners_of(state.placed.changed.iter().map(|object| object.0)),
            false => owners_of(state.changed_pages.iter().map(|page| page.0)),
        };
        Places {
            geometry: &self.image.geometry,
            active: &self.image.active,
            blocks: &self.image.rows,
            moved,
        }
    }

    fn reader(&self) -> UnitReader<'_> {
        let image = self.image;
        UnitReader {
            units: Units {
                medium: self.medium,
                areas: &image.areas,
                id: &image.superblock.identity,
            },
            geometry: &image.geometry,
            active: &image.active,
            blocks: &image.rows,
            lost: image.state.lost.iter().map(|lost| lost.unit).collect(),
            effort: self.effort,
        }
    }
}

/// The least pages and objects that need what cannot be read of which is said that they do.
const LEAST_NEEDERS: usize = 1 << 14;

/// Logical pages that hold something.
fn mapped(view: &RowView<'_>, named: Option<&NamedObjects>) -> Result<u64, VolumeError> {
    if let Some(named) = named {
        return Ok(named.pages);
    }
    let mut mapped = 0;
    view.each_mapped(|_, _| mapped += 1)?;
    Ok(mapped)
}

/// Compares rows of objects, packed pages and history with what refers to them; answers what the root must tell.
fn compare_objects(
    on: &Subject<'_>,
    view: &RowView<'_>,
    named: &NamedObjects,
    told: &mut Sentences,
) -> Result<Tallies, VolumeError> {
    if history_options(on.id).is_some() {
        history::check_history(on, told)?;
    }
    let packed = match on.id.trusts_digests() {
        false => references::check_objects::<DigestTag>(on, view, named, told)?,
        true => references::check_objects::<Digest>(on, view, named, told)?,
    };
    let PackCounts { on_flash, live } = packs::check_packs(on, view, named, told)?;
    let stored = named.alive.count();
    Ok(Tallies {
        stored,
        referenced: named.mapped.count(),
        packed,
        pinned: stored - named.named.count(),
        // How many rows were used before, nothing else says.
        spilled: on.root.tallies.spilled,
        packs: PackTallies {
            on_flash,
            live,
            ..on.root.tallies.packs
        },
    })
}

fn unit_ranges(
    image: &Image,
    room: u64,
    reads: bool,
) -> impl Iterator<Item = std::ops::Range<u32>> {
    let proof = if reads { units::PROOF_BYTES } else { 0 };
    let units = image.geometry.units();
    ranges(units, units::OWNER_BYTES + proof, room, LEAST_UNITS)
}

/// About how many bytes are read in all.
fn planned(image: &Image, since: &ChangedSince, room: u64, data: bool) -> u64 {
    let (id, root) = (&image.superblock.identity, &image.root);
    let scan = scan_bytes(id, root);
    let stored = u64::from(root.tallies.stored) * flashlore_content::PAGE_BYTES as u64;
    let of_data = if data { stored } else { 0 };
    let present = unit_ranges(image, room, data).count() as u64 * scan + of_data;
    if id.version < VERSION {
        return present;
    }
    let objects = Table::Objects.shape(id);
    let in_ranges = |rows, bytes, least| ranges(rows, bytes, room, least).count() as u64;
    let counted = in_ranges(
        objects.rows,
        references::OBJECT_BYTES,
        objects.rows_per_page(),
    ) + in_ranges(root.tallies.packs.numbers, packs::PACK_BYTES, packs::LEAST);
    let before = match since.is_nothing() {
        true => 0,
        false => unit_ranges(image, room, false).count() as u64,
    };
    (counted + before) * scan + present
}
