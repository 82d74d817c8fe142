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
        Ok(_) => Err(format!("refused, but checked: {error}")),
        Err(_) => Ok(()),
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
    let report = match checked {
        // What the pages hold that cannot be read is an error for whoever needs it, and for the check as a whole.
        Err(_) if has_lost_tables => return Ok(()),
        // Nobody had asked for it, as for the owners of units of which none is in use.
        Err(error) if is_page_of_rows(&error) => return Ok(()),
        Err(error) => return Err(format!("opened, but not checked: {error}")),
        Ok(_) if has_lost_tables => return Err("a check without a page of the tables".to_owned()),
        Ok(report) => report,
    };
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
fn is_page_of_rows(error: &VolumeError) -> bool {
    let said = error.to_string();
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
    let mut names = tables
        .map(|table| format!("of table {},", table as u8))
        .into_iter();
    names.any(|name| said.contains(&name))
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
