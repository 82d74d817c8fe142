//! Characteristics as text: aligned tables and small plots, 80 columns wide.
//!
//! | module | what it is |
//! |---|---|
//! | [`table`] | rows and columns; numbers, shares, sizes and durations as people read them |
//! | [`plot`] | curves of shares in plain characters |
//! | [`requests`] | what is asked: definitions 1 to 5 and 14 |
//! | [`contents`] | what of it is alike: definitions 6 to 13 |
//! | [`whole`] | all of it, and a row a slice |

mod contents;
mod plot;
mod requests;
mod table;
mod whole;
