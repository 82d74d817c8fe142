//! What a host waits for, and what it counts as a request.

use super::{BlockState, element, options, page};
use crate::element::{Device, Element, OperationKind, Work};
use crate::icash::Options;
use crate::icash::state::ICash;
use crate::timed::{Listener, TimedStep};

/// Block 1 is an associate of block 0 or the other way round; who is told what happens.
fn pair(answers_early: bool) -> (ICash, u32, Listener) {
    let mut element = element(Options {
        answers_early,
        ..options()
    });
    element.write_page(0, page(1, [1; 8]));
    element.write_page(1, page(1, [1; 8]));
    element.scan_now();
    let associate =
        (0..2).find(|&block| matches!(element.state_of(block), BlockState::AssociateOf(_)));
    let listener = Listener::default();
    element.observe(Box::new(listener.clone()));
    (element, associate.expect("an associate"), listener)
}

fn is_read(step: &TimedStep) -> bool {
    matches!(step, TimedStep::Device(op) if (op.device, op.kind) == (Device::Fast, OperationKind::Read))
}

/// Section 5.1: compression can be done beside input and output.
#[test]
fn a_write_is_answered_before_its_reference_is_read_and_it_is_encoded() {
    for answers_early in [false, true] {
        let (mut element, associate, listener) = pair(answers_early);
        let mut steps = Vec::new();
        listener.take(&mut steps);
        element
            .write(element.lba_of(associate), &page(1, [2; 8]))
            .unwrap();
        listener.take(&mut steps);
        let answer = steps.iter().position(|step| *step == TimedStep::Background);
        let read = steps.iter().position(is_read);
        let encoded = steps
            .iter()
            .position(|step| *step == TimedStep::Work(Work::Encode));
        assert!(read.is_some() && read < encoded, "{steps:?}");
        assert_eq!(answer < read, answers_early, "{steps:?}");
    }
}

/// What was answered may still wait for the processor: a group of the log is written behind it.
#[test]
fn a_group_waits_for_what_was_answered() {
    let (mut element, associate, listener) = pair(true);
    let address = element.lba_of(associate);
    element.write(address, &page(1, [2; 8])).unwrap();
    let mut steps = Vec::new();
    listener.take(&mut steps);
    element.flush().unwrap();
    listener.take(&mut steps);
    assert_eq!(steps[0], TimedStep::Barrier);
    assert!(steps.len() > 1);
}

#[test]
fn blocks_of_one_request_count_once() {
    let mut element = element(Options {
        scan_every: 4,
        ..options()
    });
    for request in 0..12 {
        for block in 0..3 {
            if block > 0 {
                element.continue_request();
            }
            element.write_page(request * 3 + block, page(request, [1; 8]));
        }
    }
    assert_eq!(element.counters().scans, 3);
}
