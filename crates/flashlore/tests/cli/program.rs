//! Running the program, and small traces for it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// What a run of the program left behind.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program in `dir`.
pub fn run_in<S: AsRef<OsStr>>(dir: &Path, args: &[S]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_flashlore"))
        .args(args)
        .current_dir(dir)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran::of(output)
}

/// Runs the program in the temporary directory of the system.
pub fn run<S: AsRef<OsStr>>(args: &[S]) -> Ran {
    run_in(&std::env::temp_dir(), args)
}

/// Standard error of a success without output.
pub fn quiet(ran: Ran) -> String {
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    ran.stderr
}

impl Ran {
    fn of(output: Output) -> Self {
        let ran = Self {
            code: output.status.code().expect("the program ends by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        assert!(
            !ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'),
            "no terminal, no escapes"
        );
        ran
    }

    /// The standard output of a success that has nothing to complain about.
    pub fn ok(self) -> String {
        assert_eq!(
            (self.code, self.stderr.as_str()),
            (0, ""),
            "{}",
            self.stdout
        );
        self.stdout
    }

    /// The standard output of a success that says of a volume or an array that it was not closed, and nothing else.
    pub fn ok_unclosed(self) -> String {
        let told: Vec<&str> = self.stderr.lines().collect();
        let unclosed = matches!(told[..], [line] if line.contains("was not closed"));
        assert!(self.code == 0 && unclosed, "{}", self.stderr);
        self.stdout
    }

    /// The message of a failure with this exit code, which prints nothing else.
    pub fn fails(self, code: i32) -> String {
        assert_eq!(
            (self.code, self.stdout.as_str()),
            (code, ""),
            "{}",
            self.stderr
        );
        let message = self.stderr.strip_prefix("error: ").expect("a message");
        message.trim_end().to_string()
    }

    /// The standard output as JSON.
    pub fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }
}

/// A directory with traces in it.
pub struct Place {
    dir: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> &Self {
        fs::write(self.path(name), text).unwrap();
        self
    }

    /// Starts the program and kills it after so long; whether it had ended by itself.
    pub fn run_killed(&self, args: &[&str], after: Duration) -> bool {
        let mut child = Command::new(env!("CARGO_BIN_EXE_flashlore"))
            .args(args)
            .current_dir(self.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(after);
        let ended = child.try_wait().unwrap().is_some();
        // It may end meanwhile.
        let _ = child.kill();
        child.wait().unwrap();
        ended
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        run_in(self.dir.path(), args)
    }
}

/// FIU text: 4,000 requests on 400 pages, one in eight a read, content from 600 values.
pub fn fiu() -> String {
    fiu_of(4000, 0)
}

/// As [`fiu`], of `requests` requests on pages from `first_page` on.
pub fn fiu_of(requests: u64, first_page: u64) -> String {
    let mut text = String::new();
    let mut state = 1_u64;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for number in 0..requests {
        let (page, value) = (first_page + draw(400), draw(600));
        let op = if draw(8) == 0 { 'R' } else { 'W' };
        let time_ns = number * 400_000;
        writeln!(
            text,
            "{time_ns} 1 test {} 8 {op} 8 0 {value:032x}",
            page * 8
        )
        .unwrap();
    }
    text
}

/// MSR text without content, on two disks.
pub fn msr() -> String {
    let mut text = String::new();
    for number in 0..500_u64 {
        let time = 128_166_372_003_061_629 + number * 10_000;
        let (disk, offset) = (number % 2, number * 7919 % 300 * 4096);
        writeln!(text, "{time},host,{disk},Write,{offset},8192,100").unwrap();
    }
    text
}

/// The runs of results, without what depends on the machine.
pub fn runs(mut results: Value) -> Vec<Value> {
    let runs = results["runs"].as_array_mut().unwrap();
    for run in runs.iter_mut() {
        for name in ["wall_s", "requests_per_s", "peak_rss_bytes"] {
            assert!(run["run"].as_object_mut().unwrap().remove(name).is_some());
        }
    }
    runs.clone()
}
