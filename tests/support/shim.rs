//! A library for `LD_PRELOAD` (`shim.c`) that delays syncs of a process, or fails one of its calls with EIO.
//! It notes where each sync begins and ends, so that a test can compare the order of events.

#![allow(dead_code, reason = "each test program uses a part of this module")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sandbox::run;

/// The library, and what it reports.
pub struct Shim {
    dir: tempfile::TempDir,
    /// Only calls on files below it are changed.
    below: PathBuf,
}

impl Shim {
    /// Builds the library.
    pub fn new(below: &Path) -> Shim {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/shim.c");
        let library = dir.path().join("shim.so");
        run(Command::new("cc")
            .args(["-std=gnu11", "-O1", "-shared", "-fPIC", "-o"])
            .arg(library)
            .args([source, "-ldl"]));
        Shim { dir, below: below.to_owned() }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// The path of the library.
    pub fn library(&self) -> String {
        self.path("shim.so")
    }

    /// The environment of a process that uses it, with further variables.
    pub fn env(&self, variables: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = [
            ("LD_PRELOAD", self.library()),
            ("SHIM_DIR", self.below.to_str().expect("UTF-8").to_owned()),
            ("SHIM_LOG", self.path("log")),
            ("SHIM_FAIL_WHEN", self.path("fail")),
        ];
        let further = variables.iter().map(|(name, value)| (*name, (*value).to_owned()));
        own.into_iter().chain(further).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Lets the next call fail.
    pub fn fail(&self) {
        std::fs::write(self.path("fail"), "").expect("a file");
    }

    /// Whether the call has failed.
    pub fn has_failed(&self) -> bool {
        !Path::new(&self.path("fail")).exists()
    }

    pub fn log(&self) -> Vec<(String, u32)> {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let line = |line: &str| {
            let (what, number) = line.split_once(' ').expect("a word and a number");
            (what.to_owned(), number.parse().expect("a number"))
        };
        log.lines().map(line).collect()
    }

    /// The syncs that have begun and not ended.
    pub fn in_progress(&self) -> Vec<u32> {
        let log = self.log();
        let has_ended = |number: u32| log.iter().any(|(what, ended)| what == "end" && *ended == number);
        log.iter().filter(|(what, number)| what == "begin" && !has_ended(*number)).map(|(_, number)| *number).collect()
    }

    /// The result of `act`, if one sync was in progress from before its begin until after its end.
    pub fn during_sync<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let before = self.in_progress();
        let result = act();
        let after = self.in_progress();
        before.iter().any(|number| after.contains(number)).then_some(result)
    }

    /// The last sync that has begun, and the last that has ended; 0: none.
    pub fn last(&self, what: &str) -> u32 {
        self.log().into_iter().filter(|(it, _)| it == what).map(|(_, number)| number).max().unwrap_or(0)
    }
}

pub fn as_strs(env: &[(String, String)]) -> Vec<(&str, &str)> {
    env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}
