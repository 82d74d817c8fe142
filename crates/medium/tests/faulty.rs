//! Calls that fail as told, and the errors of calls that no medium takes.

use std::sync::Arc;

use flashlore_medium::{
    Cause, Failure, Faults, FaultyMedium, Medium, MediumError, MemoryMedium, SECTOR, When,
    WriteFault,
};

const LEN: usize = 8 * SECTOR;

fn medium(faults: Faults) -> FaultyMedium<MemoryMedium> {
    FaultyMedium::new(MemoryMedium::new(LEN), faults)
}

fn write(medium: &impl Medium, sector: usize) -> Result<(), MediumError> {
    medium.write((sector * SECTOR) as u64, &[1; SECTOR])
}

#[test]
fn reads_fail_exactly_where_they_touch_the_range() {
    let medium = medium(Faults {
        unreadable: vec![1024..1025, 3000..3072],
        ..Faults::default()
    });
    let mut bytes = [0; 2 * SECTOR];
    medium.read(0, &mut bytes).unwrap();
    medium.read(1536, &mut bytes).unwrap();
    medium.read(2560, &mut bytes).unwrap_err();
    medium.read(3072, &mut bytes).unwrap();
    let error = medium.read(512, &mut bytes).unwrap_err();
    assert!(matches!(error.cause, Cause::Eio));
    assert_eq!((error.offset, error.length), (512, 1024));
    medium.set_faults(Faults::default());
    medium.read(512, &mut bytes).unwrap();
}

#[test]
fn one_write_fails_or_all_from_one_on() {
    let fails = |when| {
        let medium = medium(Faults {
            writes: Some(WriteFault {
                when,
                failure: Failure::NoSpace,
            }),
            ..Faults::default()
        });
        let failed: Vec<bool> = (0..4)
            .map(|sector| match write(&medium, sector) {
                Ok(()) => false,
                Err(error) => error.is_no_space(),
            })
            .collect();
        assert_eq!(medium.writes(), 4);
        let mut bytes = [0; 4 * SECTOR];
        medium.inner().read(0, &mut bytes).unwrap();
        let arrived: Vec<bool> = bytes.chunks(SECTOR).map(|sector| sector[0] == 1).collect();
        assert!(
            arrived
                .iter()
                .zip(&failed)
                .all(|(arrived, failed)| arrived != failed)
        );
        failed
    };
    assert_eq!(fails(When::Only(2)), [false, true, false, false]);
    assert_eq!(fails(When::From(3)), [false, false, true, true]);
}

#[test]
fn one_sync_fails_or_all_from_one_on() {
    let fails = |when| {
        let medium = medium(Faults {
            syncs: Some(when),
            ..Faults::default()
        });
        let failed: Vec<bool> = (0..3).map(|_| medium.sync().is_err()).collect();
        assert_eq!(medium.syncs(), 3);
        failed
    };
    assert_eq!(fails(When::Only(1)), [true, false, false]);
    assert_eq!(fails(When::From(2)), [false, true, true]);
}

#[test]
fn errors_name_what_where_and_why() {
    let medium: Box<dyn Medium> = Box::new(Arc::new(MemoryMedium::new(LEN)));
    let message = |result: Result<(), MediumError>| result.unwrap_err().to_string();
    assert_eq!(
        message(write(&medium, 8)),
        "cannot write 512 bytes at offset 4096: the medium has 4096 bytes"
    );
    assert_eq!(
        message(medium.read(512, &mut [0; 100])),
        "cannot read 100 bytes at offset 512: offset and length must be multiples of 512 bytes"
    );
    assert_eq!(
        message(medium.discard(u64::MAX - 511, 512)),
        "cannot discard 512 bytes at offset 18446744073709551104: the medium has 4096 bytes"
    );
}

#[test]
fn memory_ages_and_hands_its_bytes_over() {
    let medium = MemoryMedium::from_bytes(vec![0; LEN]);
    medium.write(0, &[3; LEN]).unwrap();
    medium.discard(SECTOR as u64, SECTOR as u64).unwrap();
    medium.flip(0, 2).unwrap();
    medium.flip(LEN as u64, 0).unwrap_err();
    medium.flip(u64::MAX, 0).unwrap_err();
    let bytes = medium.into_bytes();
    assert_eq!(bytes[..2], [7, 3]);
    assert_eq!(bytes[SECTOR..2 * SECTOR], [0; SECTOR]);
    assert_eq!(bytes[2 * SECTOR..], [3; LEN - 2 * SECTOR]);
}
