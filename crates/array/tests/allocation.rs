//! A disk that has been at work for a while allocates nothing for a request.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use flashlore_array::hdd::{DiskOptions, Hdd, Raid0, Request, Scheduler, Time, drives};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counted for each thread.
struct Counted;

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is the one asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Submits 16 requests at a time and lets them end, for so many turns.
fn work(
    array: &mut Raid0,
    from: Time,
    turns: u64,
    done: &mut Vec<flashlore_array::hdd::Completion>,
) {
    let capacity = array.capacity();
    for turn in 0..turns {
        let at = from + turn * 1_000_000_000;
        for number in 0..16 {
            let lba = (turn * 16 + number) * 7_919_041 % (capacity / 8) * 8;
            let request = match number % 3 {
                0 if number == 0 => Request::FLUSH,
                0 | 1 => Request::write(lba % (capacity - 300), 300),
                _ => Request::read(lba % (capacity - 300), 300),
            };
            array
                .submit(at, number, request)
                .expect("a request that fits");
        }
        while let Some(event) = array.next_event() {
            array.advance(event, done);
        }
        assert_eq!(done.drain(..).count(), 16);
    }
}

#[test]
fn nothing_is_allocated_once_the_queues_have_their_size() {
    for (scheduler, write_back) in [(Scheduler::Fcfs, false), (Scheduler::CLook, true)] {
        let options = DiskOptions {
            scheduler,
            write_back,
        };
        let parameters = drives::named("barracuda-7200.7-160g").expect("a drive");
        let disk = Hdd::new(&parameters, options).expect("a drive that can be");
        let mut array = Raid0::new(vec![disk; 3], 128).expect("an array");
        let mut done = Vec::new();
        work(&mut array, 0, 50, &mut done);
        let before = ALLOCATIONS.with(Cell::get);
        work(&mut array, 100_000_000_000, 200, &mut done);
        assert_eq!(ALLOCATIONS.with(Cell::get), before, "{scheduler:?}");
        assert!(before > 0, "nothing is counted");
    }
}
