//! Sizes of a history: how far back a device can go, and what the paper charges for an entry.

/// Bytes the paper charges for an entry: page and address of 4 bytes each, 8 of time, 4 of flags and
/// 4 of link (`spec/bvssd.md` section 2).
pub const PAPER_ENTRY_BYTES: u64 = 24;

/// How far back a device can go that holds `total` bytes, `live` of them current: what is left holds
/// versions, and `written` bytes come in every `during`. In the unit of `during`, rounded down.
/// `None` if nothing is written: nothing is ever superseded.
pub fn protection_window(total: u64, live: u64, written: u64, during: u64) -> Option<u64> {
    let room = u128::from(total.saturating_sub(live)) * u128::from(during);
    let window = room.checked_div(u128::from(written))?;
    Some(u64::try_from(window).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_window_and_memory() {
        // spec/bvssd.md: B7, and sections 2 and 8 (9).
        const GIB: u64 = 1 << 30;
        assert_eq!(protection_window(60 * GIB, 0, 15 * GIB, 12), Some(48));
        assert_eq!(
            protection_window(60 * GIB, 15 * GIB, 15 * GIB, 12),
            Some(36)
        );
        assert_eq!(protection_window(15 * GIB, 60 * GIB, 15 * GIB, 12), Some(0));
        assert_eq!(protection_window(60 * GIB, 0, 0, 12), None);
        assert_eq!(protection_window(u64::MAX, 0, 1, 2), Some(u64::MAX));
        assert_eq!(15 * GIB / 4096 * PAPER_ENTRY_BYTES, 94_371_840);
        assert_eq!(60 * GIB / 4096 * PAPER_ENTRY_BYTES, 377_487_360);
    }
}
