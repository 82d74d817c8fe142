//! The tests of statistics, one module a subject.

mod common;

mod examples;
mod oracle;
mod output;
mod sampling;
