//! The memory that a volume or an array may take, against what the machine has.

use std::fs;

use flashlore_volume::{Identity, MemoryShares, USUAL_MEMORY, least_memory, least_memory_to_check};

use crate::error::ServeError;

/// Of the memory of the machine a volume takes one part in so many, unless it is told otherwise.
const SHARE: u64 = 4;

/// The memory that a volume may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// Bytes in all; a quarter of the machine's and [`USUAL_MEMORY`] at most if nothing is said.
    pub memory: Option<u64>,
    /// Of them, bytes for the fingerprint index; if nothing is said half of what is left beside what must be there.
    pub index: Option<u64>,
}

impl Budget {
    /// How a volume divides it.
    ///
    /// # Errors
    /// It is too little for the volume, or the machine has less than that needs.
    pub(crate) fn shares(&self, id: &Identity) -> Result<MemoryShares, ServeError> {
        let least = least_memory(id).saturating_add(self.index.unwrap_or(0));
        let needs = ("open it takes up to", least_memory(id));
        refuse_more_than(available(), needs, "close something else")?;
        let limit = self.memory.unwrap_or_else(|| usual().max(least));
        let shares = MemoryShares::within(id, limit, self.index);
        shares.map_err(|error| ServeError::Usage(error.to_string()))
    }

    /// All that a check of a volume may take.
    ///
    /// # Errors
    /// The machine has less than that needs at least.
    pub(crate) fn for_check(&self, id: &Identity) -> Result<u64, ServeError> {
        let least = least_memory_to_check(id);
        let needs = ("to check it takes", least);
        refuse_more_than(available(), needs, "close something else")?;
        Ok(self.memory.unwrap_or_else(|| usual().max(least)))
    }
}

/// What a volume may take unless something else is said.
fn usual() -> u64 {
    total().map_or(USUAL_MEMORY, |total| (total / SHARE).min(USUAL_MEMORY))
}

/// Bytes of memory that the machine has; nothing if it does not say.
fn total() -> Option<u64> {
    told("MemTotal:")
}

/// Bytes of memory that the system says could be used without swapping; nothing if it does not say.
pub(crate) fn available() -> Option<u64> {
    told("MemAvailable:")
}

fn told(field: &str) -> Option<u64> {
    let told = fs::read_to_string("/proc/meminfo").ok()?;
    kibibytes(&told, field).map(|kib| kib << 10)
}

fn kibibytes(told: &str, field: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Refuses what may need more memory than there is, rather than that the system ends the process one day: what takes how
/// much. `help` says what can be done.
pub(crate) fn refuse_more_than(
    available: Option<u64>,
    (what, need): (&str, u64),
    help: &str,
) -> Result<(), ServeError> {
    match available {
        Some(available) if need > available => Err(ServeError::Refused(format!(
            "{what} {} MiB of memory, and {} MiB are available; {help}",
            need.div_ceil(1 << 20),
            available >> 20
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::kibibytes;

    #[test]
    fn fields_are_found_and_nothing_else() {
        let told = "MemTotal:  100 kB\nMemAvailable:   23 kB\nMemOdd: 7\n";
        assert_eq!(kibibytes(told, "MemAvailable:"), Some(23));
        assert_eq!(kibibytes(told, "MemTotal:"), Some(100));
        assert_eq!(kibibytes(told, "MemOdd:"), None);
        assert_eq!(kibibytes(told, "Swap:"), None);
    }

    #[test]
    fn the_system_says() {
        assert!(super::available().is_some_and(|bytes| bytes > 1 << 20));
        assert!(super::total() >= super::available());
    }
}
