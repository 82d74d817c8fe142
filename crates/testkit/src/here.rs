//! What this machine has.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::skip;

/// A file that is read where it is at hand, such as `captures/maildir.fiu.xz`: in the directory that `FLASHLORE_DATA`
/// names, or in `../shared/data`. The captures of the demo are in the repository.
pub fn data(file: &str) -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("FLASHLORE_DATA")
        .map_or_else(|| repository.join("../shared/data"), PathBuf::from);
    let path = folder.join(file);
    let capture = file.strip_prefix("captures/");
    let demo = capture.map(|name| repository.join("crates/flashlore/data").join(name));
    if path.exists() {
        return Some(path);
    }
    if let Some(demo) = demo.filter(|demo| demo.exists()) {
        return Some(demo);
    }
    let absent = format!("{} is absent", path.display());
    if capture.is_some() {
        skip("captures", absent);
    } else {
        skip("public-traces", absent);
    }
    None
}

/// Whether all programs are installed; a skip if not.
pub fn installed(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<_> = std::env::split_paths(&path).collect();
    directories.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let lacks = |program: &&&str| !directories.iter().any(|d| d.join(program).exists());
    let missing = programs.iter().find(lacks);
    if let Some(program) = missing {
        skip("program-missing", format!("{program} is not installed"));
    }
    missing.is_none()
}

/// Whether this user is root, as mounting takes; a skip if not.
pub fn is_root() -> bool {
    // The owner of what belongs to this process: its effective user.
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !root {
        skip("not-root", "loop devices and mounts need root");
    }
    root
}

/// Whether loop devices can be attached and FUSE can mount; a skip if not.
pub fn may_mount() -> bool {
    if !is_root() {
        return false;
    }
    if !Path::new("/dev/fuse").exists() {
        skip("no-fuse", "there is no /dev/fuse");
    } else if !Path::new("/dev/loop-control").exists() {
        skip("no-loop-devices", "there is no /dev/loop-control");
    } else {
        return true;
    }
    false
}
