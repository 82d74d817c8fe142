//! The tests of the protocol, one module a subject.

mod client;
mod exercise;
mod served;

mod clients;
mod conversation;
mod hostile;
mod hostile_server;
mod options;
mod requests;
mod server;
mod streams;
mod tls;
