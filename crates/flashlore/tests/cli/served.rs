//! A volume that is served, recorded or not.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::nbd_client::Client;
use crate::program::Place;

/// A place with a small volume `disk`.
pub fn place() -> Place {
    let place = Place::new();
    let create = ["create", "disk", "--size", "1MiB"];
    assert_eq!(place.run(&create).code, 0);
    place
}

/// A volume that is served.
pub struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    pub socket: PathBuf,
    /// What it said before clients could come.
    pub told: String,
}

impl Server {
    /// `flashlore serve disk` with more flags.
    pub fn start(place: &Place, more: &[&str]) -> Server {
        Server::run(place, &[&["serve", "disk"], more].concat())
    }

    /// A command that serves the volume `disk`.
    pub fn run(place: &Place, args: &[&str]) -> Server {
        Server::spawn(place, env!("CARGO_BIN_EXE_flashlore"), args)
    }

    /// The same where no file may be written behind so many blocks of 512 bytes, as if the disk were full there.
    pub fn limited(place: &Place, blocks: u32, args: &[&str]) -> Server {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let shell = ["-c", &script, env!("CARGO_BIN_EXE_flashlore")];
        Server::spawn(place, "sh", &[&shell[..], args].concat())
    }

    /// `flashlore serve disk` by somebody whose new files have all permissions but these.
    pub fn under_umask(place: &Place, umask: &str) -> Server {
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        let args = [
            "-c",
            &script,
            env!("CARGO_BIN_EXE_flashlore"),
            "serve",
            "disk",
        ];
        Server::spawn(place, "sh", &args)
    }

    fn spawn(place: &Place, program: &str, args: &[&str]) -> Server {
        let mut child = Command::new(program)
            .args(args)
            .current_dir(place.path(""))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It says so once clients can come.
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut told = String::new();
        while !told.contains("serving nbd+unix:///disk") {
            let more = stderr.read_line(&mut told).unwrap();
            assert!(more > 0, "it ended without serving: {told}");
        }
        Server {
            child,
            stderr,
            socket: place.path("disk/nbd.sock"),
            told,
        }
    }

    pub fn open(&self, export: &str) -> Client {
        Client::open(&self.socket, export).unwrap()
    }

    pub fn signal(&self, name: &str) {
        let killed = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(killed.unwrap().success());
    }

    /// What it says next.
    pub fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// Ends it as an administrator would; its exit code and what it said.
    pub fn ended(mut self) -> (Option<i32>, String) {
        self.signal("-TERM");
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    /// As [`Server::ended`], of a server that succeeds.
    pub fn stop(self) -> String {
        let (code, said) = self.ended();
        assert_eq!(code, Some(0), "{said}");
        said
    }

    /// Kills it as the machine would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that failed leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
