//! A volume of an older program gets the present format, and keeps what it holds.

use std::fs;
use std::path::Path;

use crate::program::{Place, quiet};

/// Puts the image of a volume of an older format into a directory.
fn old_volume(place: &Place, version: u32) {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../volume/tests/golden");
    let packed = fs::read(images.join(format!("v{version}-everything.image.zst"))).unwrap();
    fs::create_dir(place.path("disk")).unwrap();
    let image = zstd::decode_all(&packed[..]).unwrap();
    fs::write(place.path("disk/volume.flashlore"), image).unwrap();
}

#[test]
fn who_only_looks_asks_for_an_upgrade_and_finds_everything_after_it() {
    for version in [3, 4, 5, 6, 7, 8] {
        let place = Place::new();
        old_volume(&place, version);
        let before = fs::read(place.path("disk/volume.flashlore")).unwrap();
        let refused = place.run(&["info", "disk"]).fails(1);
        assert!(refused.contains("flashlore upgrade"), "{refused}");
        let now = fs::read(place.path("disk/volume.flashlore")).unwrap();
        assert!(before == now, "a look wrote something");
        let done = quiet(place.run(&["upgrade", "disk"]));
        let expected = format!("format version from {version} to 9");
        assert!(done.contains(&expected), "{done}");
        quiet(place.run(&["export", "disk", "image.raw"]));
        let image = fs::read(place.path("image.raw")).unwrap();
        assert!(image.iter().any(|&byte| byte != 0));
        let listed = place.run(&["snapshot", "list", "disk"]).ok();
        assert!(version == 3 || listed.contains("golden"), "{listed}");
        place.run(&["check", "disk"]).ok();
        let again = quiet(place.run(&["upgrade", "disk"]));
        assert!(again.contains("it has format version 9"), "{again}");
    }
}

#[test]
fn what_is_no_volume_is_refused_in_a_sentence() {
    let place = Place::new();
    place.run(&["upgrade", "disk"]).fails(1);
    fs::create_dir(place.path("disk")).unwrap();
    fs::write(place.path("disk/volume.flashlore"), [7; 100_000]).unwrap();
    place.run(&["upgrade", "disk"]).fails(1);
    assert_eq!(
        fs::read(place.path("disk/volume.flashlore")).unwrap(),
        [7; 100_000]
    );
}
