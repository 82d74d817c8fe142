//! The tests of volumes, one module a subject. The crash search is a program of its own.

mod exercise;
mod rows;
mod support;

mod ahead;
mod arbitrary;
mod as_simulated;
mod beside;
mod bit_flips;
mod bulk;
mod check_passes;
mod copies;
mod damage;
mod differential;
mod disk;
mod failures;
mod foreign_values;
mod given_up;
mod golden;
mod grow;
mod in_use;
mod index;
mod journal_chain;
mod moved;
mod one_read;
mod options;
mod purge;
mod record;
mod reopen;
mod rot;
mod space;
mod table_pages;
mod tables;
