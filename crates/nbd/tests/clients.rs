//! Real clients against the listener. A tool that is not installed is said and passed over.

use crate::served;

use std::path::Path;
use std::process::Command;

use flashlore_nbd::server::Config;
use flashlore_testkit::{installed, skip};
use served::{Served, serve};

const MIB: usize = 1 << 20;

/// Runs a program; what it printed, or nothing if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    if !installed(&[program]) {
        return None;
    }
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {said} {complained}"
    );
    Some(said)
}

fn uri(served: &Served, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", served.socket.display())
}

fn image(path: &Path, size: usize) {
    let mut bytes: Vec<u8> = (0..size as u64)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8)
        .collect();
    bytes[size / 4..size / 2].fill(0);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn nbdinfo_understands_what_is_told() {
    let served = serve(4 * MIB, Config::default());
    let Some(said) = run("nbdinfo", &["--json", &uri(&served, "disk")]) else {
        return;
    };
    for part in [
        "\"protocol\": \"newstyle-fixed\"",
        "\"structured\": true",
        "\"export-size\": 4194304",
        "\"description\": \"a disk in memory\"",
        "\"base:allocation\"",
        "\"flashlore:stored\"",
        "\"can_multi_conn\": true",
        "\"can_fast_zero\": true",
        "\"can_cache\": true",
        "\"can_df\": true",
        "\"is_read_only\": false",
        "\"block_size_maximum\": 33554432",
    ] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    let list = run("nbdinfo", &["--list", "--json", &uri(&served, "")]).unwrap();
    assert!(list.contains("\"export-name\": \"past\""), "{list}");
    let map = run(
        "nbdinfo",
        &["--map=flashlore:stored", &uri(&served, "disk")],
    )
    .unwrap();
    assert!(map.contains("4194304"), "{map}");
}

#[test]
fn nbdcopy_brings_an_image_there_and_back() {
    let served = serve(32 * MIB, Config::default());
    let directory = tempfile::tempdir().unwrap();
    let (there, back) = (
        directory.path().join("there"),
        directory.path().join("back"),
    );
    image(&there, 32 * MIB);
    let uri = uri(&served, "disk");
    if run("nbdcopy", &["--flush", there.to_str().unwrap(), &uri]).is_none() {
        return;
    }
    run("nbdcopy", &[&uri, back.to_str().unwrap()]);
    assert!(std::fs::read(&there).unwrap() == std::fs::read(&back).unwrap());
    run(
        "nbdcopy",
        &[
            "--connections=4",
            "--requests=16",
            &uri,
            back.to_str().unwrap(),
        ],
    );
    assert!(std::fs::read(there).unwrap() == std::fs::read(back).unwrap());
}

#[test]
fn qemu_img_converts_and_compares() {
    let served = serve(16 * MIB, Config::default());
    let directory = tempfile::tempdir().unwrap();
    let there = directory.path().join("there");
    image(&there, 16 * MIB);
    let (path, uri) = (there.to_str().unwrap(), uri(&served, "disk"));
    let convert = ["convert", "-n", "-f", "raw", "-O", "raw", path, &uri];
    if run("qemu-img", &convert).is_none() {
        return;
    }
    run(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", path, &uri],
    );
    let map = run("qemu-img", &["map", "--output=json", "-f", "raw", &uri]).unwrap();
    assert!(map.contains("\"zero\": true"), "{map}");
    run(
        "qemu-img",
        &["bench", "-f", "raw", "-c", "2000", "-d", "32", &uri],
    );
}

#[test]
fn qemu_io_writes_zeroes_discards_and_flushes() {
    let served = serve(4 * MIB, Config::default());
    let uri = uri(&served, "disk");
    let said = run(
        "qemu-io",
        &[
            "-f",
            "raw",
            "-d",
            "unmap",
            "-c",
            "write -P 7 0 1M",
            "-c",
            "read -P 7 0 1M",
            "-c",
            "write -z 64k 64k",
            "-c",
            "write -z -u 256k 64k",
            "-c",
            "write -f -P 9 512 512",
            "-c",
            "discard 512k 64k",
            "-c",
            "flush",
            "-c",
            "read -P 0 64k 64k",
            "-c",
            "read -P 9 512 512",
            "-c",
            "read -P 0 512k 64k",
            "-c",
            "aio_write -P 3 1M 512k",
            "-c",
            "aio_flush",
            "-c",
            "read -P 3 1M 512k",
            &uri,
        ],
    );
    let Some(said) = said else { return };
    assert!(!said.contains("verification failed"), "{said}");
}

#[test]
fn nbdsh_uses_the_requests_by_name() {
    let served = serve(4 * MIB, Config::default());
    let script = "\
h.pwrite(b'abc' * 100, 1000, nbd.CMD_FLAG_FUA)
assert h.pread(300, 1000) == bytearray(b'abc' * 100)
h.zero(300, 1000, nbd.CMD_FLAG_NO_HOLE)
h.trim(4096, 8192)
h.cache(4096, 0)
h.flush()
got = {}
h.block_status(65536, 0, lambda c, o, e, err: got.__setitem__(c, list(e)))
assert set(got) == {'base:allocation', 'flashlore:stored'}, got
h.set_strict_mode(0)
def fails(call, *errors):
    try:
        call()
    except nbd.Error as error:
        assert error.errno in errors, error.errno
    else:
        raise AssertionError('no error')
fails(lambda: h.pwrite(b'x', h.get_size()), 'ENOSPC')
fails(lambda: h.pread(1, h.get_size()), 'EINVAL')
fails(lambda: h.pread(1, 0, 0x80), 'EINVAL')
assert h.pread(4, 1000) == bytearray(4)
print('fine')
";
    let connect = format!("h.connect_uri('{}')", uri(&served, "disk"));
    let contexts = "h.add_meta_context('base:allocation'); h.add_meta_context('flashlore:stored')";
    if !installed(&["nbdsh"]) {
        return;
    }
    // Its module belongs to the system's interpreter, whatever else is in the path.
    let arguments = [
        "PATH=/usr/bin:/bin",
        "nbdsh",
        "-c",
        contexts,
        "-c",
        &connect,
        "-c",
        script,
    ];
    let said = run("env", &arguments).unwrap_or_default();
    assert!(said.contains("fine"), "{said}");
}

#[test]
fn fio_verifies_what_it_wrote() {
    let served = serve(16 * MIB, Config::default());
    let Some(engines) = run("fio", &["--enghelp"]) else {
        return;
    };
    if !engines.contains("nbd") {
        skip("fio-without-nbd", "fio has no engine for NBD");
        return;
    }
    let target = format!("--uri={}", uri(&served, "disk"));
    run(
        "fio",
        &[
            "--name=verify",
            "--ioengine=nbd",
            &target,
            "--rw=randwrite",
            "--bs=4k",
            "--size=16M",
            "--iodepth=32",
            "--verify=crc32c",
            "--do_verify=1",
            "--verify_fatal=1",
            "--verify_state_save=0",
        ],
    );
}
