//! The command as a user meets it: the program is run, and its output, errors and exit codes are
//! looked at.

mod characterize;
mod compare;
mod demo;
mod errors;
mod fit;
mod lengths;
mod lists;
mod memory;
mod mount;
mod nbd_client;
mod past;
mod program;
mod reproduce;
mod rerun;
mod resize;
mod synth;
mod trace;
mod volume;
