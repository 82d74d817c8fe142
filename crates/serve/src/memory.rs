//! The memory that a volume or an array needs, against what the machine has.

use std::fs;

use crate::error::ServeError;

/// Bytes of memory that the system says could be used without swapping; nothing if it does not say.
pub(crate) fn available() -> Option<u64> {
    let told = fs::read_to_string("/proc/meminfo").ok()?;
    kibibytes(&told, "MemAvailable:").map(|kib| kib << 10)
}

fn kibibytes(told: &str, field: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// What helps where a volume needs more memory than there is.
pub(crate) const VOLUME_HELP: &str =
    "serve or mount it with --memory, which keeps the rest in a scratch file";

/// Refuses what may need more memory than there is, rather than that the system ends the process one day. `help` says
/// what can be done.
pub(crate) fn refuse_more_than(
    available: Option<u64>,
    need: u64,
    help: &str,
) -> Result<(), ServeError> {
    match available {
        Some(available) if need > available => Err(ServeError::Refused(format!(
            "open it takes up to {} MiB of memory, and {} MiB are available; {help}",
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
    }
}
