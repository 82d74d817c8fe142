//! What a damaged volume must say: why it is not opened, and which addresses cannot be read.

use flashlore_flash::{Lpn, ObjectId};
use flashlore_volume::format::Table;
use flashlore_volume::{CheckReport, Finding, Volume, VolumeError};

/// Errors that say that something does not hold.
pub fn refuses(error: &VolumeError) -> bool {
    matches!(
        error,
        VolumeError::Damaged(_)
            | VolumeError::NotAVolume
            | VolumeError::Version { .. }
            | VolumeError::Features(_)
            | VolumeError::OldSuperblocks { .. }
    )
}

/// What a check before an opening says.
pub type Checked = Result<CheckReport, VolumeError>;

/// Judges an opening that was refused: for damage, which the check saw too.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn judge_refusal(error: &VolumeError, checked: &Checked) -> Result<(), String> {
    if !refuses(error) {
        return Err(format!("refused for another reason than damage: {error}"));
    }
    match checked {
        Ok(report) if report.is_clean() => Err(format!("refused, but checked: {error}")),
        _ => Ok(()),
    }
}

/// Judges what is told of a volume that opened, once all of its tables were looked at: `bad` addresses cannot be read, and
/// something old if `old_is_bad`.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn judge_findings(
    volume: &mut Volume,
    checked: Checked,
    bad: &[u32],
    old_is_bad: bool,
) -> Result<(), String> {
    let has_lost_tables = volume.table_failures() > 0;
    let report = checked.map_err(|error| format!("opened, but not checked: {error}"))?;
    match report.errors.iter().any(|error| is_page_of_rows(error)) {
        // Whoever needs its rows is told; nobody may have asked for it, as for the owners of units of which none is in use.
        true => return Ok(()),
        false if has_lost_tables => {
            return Err("a check without a page of the tables".to_owned());
        }
        false => {}
    }
    if !bad.is_empty() || old_is_bad {
        if report.is_clean() {
            return Err("a clean check".to_owned());
        }
        all_named("the check", bad, &report.findings)?;
    }
    let scrubbed = volume.scrub(ObjectId(0), u32::MAX).unreadable;
    all_named("the scrub", bad, &scrubbed)
}

/// Whether a page does not hold of a table that is read a row at a time.
fn is_page_of_rows(said: &str) -> bool {
    let tables = [
        Table::Map,
        Table::Objects,
        Table::Packs,
        Table::Owners,
        Table::FreeHandles,
        Table::Versions,
        Table::Heads,
        Table::Kept,
        Table::KeptHeads,
    ];
    let mut told = tables
        .map(|table| format!("of {table} cannot be read"))
        .into_iter();
    told.any(|told| said.contains(&told))
}

fn all_named(who: &str, bad: &[u32], findings: &[Finding]) -> Result<(), String> {
    let is_named = |&lpn: &u32| findings.iter().any(|f| f.addresses.contains(&Lpn(lpn)));
    match bad.iter().find(|&lpn| !is_named(lpn)) {
        Some(lpn) => Err(format!(
            "page {lpn} cannot be read, {who} names {findings:?}"
        )),
        None => Ok(()),
    }
}
