//! What the operating system says about this process.

/// The largest amount of memory this process has held so far, in bytes; nothing where the system
/// does not tell.
pub fn peak_rss_bytes() -> Option<u64> {
    parse_peak(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_peak(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_its_line() {
        assert_eq!(
            parse_peak("VmPeak:\t 9 kB\nVmHWM:\t    5044 kB\n"),
            Some(5044 * 1024)
        );
        assert_eq!(parse_peak("VmPeak:\t 9 kB\n"), None);
        assert_eq!(parse_peak("VmHWM:\t many kB\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_holds_memory() {
        assert!(peak_rss_bytes().unwrap() > 100_000);
    }
}
