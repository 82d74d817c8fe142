//! The command as a user meets it: the program is run, and its output, errors and exit codes are
//! looked at.

mod array;
mod array_adopt;
mod array_media;
mod bench;
mod characterize;
mod compare;
mod definition;
mod demo;
mod errors;
mod fit;
mod full;
mod lengths;
mod lists;
mod memory;
mod metrics;
mod mount;
mod nbd_client;
mod outputs;
mod past;
mod program;
mod record;
mod reproduce;
mod rerun;
mod resize;
mod served;
mod serving;
mod synth;
mod trace;
mod unclosed;
mod upgrade;
mod volume;
