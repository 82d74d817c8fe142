//! The recipes of a workload's values, 12 bytes each.
//!
//! What a page holds before anything is written to it follows from its number: the pages of the device
//! are laid out in groups, each with one reference and its associates. A new value on a page that is
//! written in place is the next version of what the page held; any other new value begins a family, of
//! the page's kind. Only the last version of a family goes on: when two pages hold it, the second one
//! to be written begins a family.

use std::path::Path;

use flashlore_trace::pages::PAGE_BYTES;
use flashlore_trace::{Batch, Existing, Op, OutputFile, PageSource, PagesWriter};

use super::changes;
use super::hash::{self, Purpose};
use super::materialise::{BODY_BYTES, materialise};
use super::model::Similarity;
use super::recipe::{NO_CLUSTER, PageKind, Recipe};
use crate::generate::{Generator, SynthOptions};
use crate::profile::Profile;

/// Families of pages of the device have this bit and the page's number; the others are counted.
const DEVICE: u32 = 1 << 31;

/// The recipes of values 0 to n of a workload, with all that makes bytes of them.
#[derive(Debug, Clone)]
pub struct Recipes {
    model: Similarity,
    seed: u64,
    image_pages: u32,
    /// One reference in so many pages; 0 for none.
    group_pages: u32,
    /// Families that the workload began.
    families: u32,
    zero_exists: bool,
    entries: Vec<RecipeEntry>,
}

/// A recipe, and whether the family went on.
#[derive(Debug, Clone, Copy)]
struct RecipeEntry {
    cluster: u32,
    family: u32,
    version: u16,
    kind: PageKind,
    continued: bool,
}

impl Recipes {
    /// No values yet, of a workload on so many pages.
    pub fn new(model: &Similarity, seed: u64, pages: u32) -> Self {
        let images = model.images.as_ref().map_or(1, |images| images.count);
        let group = match model.references > 0.0 {
            true => (1.0 / model.references).round() as u32,
            false => 0,
        };
        Recipes {
            model: model.clone(),
            seed,
            image_pages: pages_of_image(images, pages),
            group_pages: group,
            families: 0,
            zero_exists: false,
            entries: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn get(&self, value: u32) -> Option<Recipe> {
        self.entries.get(value as usize).map(RecipeEntry::recipe)
    }

    /// A page that held `before` was read or written and holds `value`. Values appear in the order of
    /// their numbers.
    pub(crate) fn observe(&mut self, page: u32, op: Op, before: u32, value: u32) {
        if value as usize != self.entries.len() {
            return;
        }
        let recipe = match op {
            Op::Write => self.written(page, before),
            _ => self.device(page),
        };
        let recipe = match (recipe.kind, self.zero_exists) {
            (PageKind::Zero, false) => {
                self.zero_exists = true;
                Recipe::ZERO
            }
            _ => recipe,
        };
        self.entries.push(RecipeEntry::new(&recipe));
    }

    /// A new value on a page.
    fn written(&mut self, page: u32, before: u32) -> Recipe {
        let next = match self.entries.get(before as usize) {
            Some(entry) if entry.continued => None,
            Some(entry) => self.next_version(&entry.recipe()),
            None => self.next_version(&self.device(page)),
        };
        let Some(next) = next else {
            return self.begin(page);
        };
        if let Some(entry) = self.entries.get_mut(before as usize) {
            entry.continued = true;
        }
        next
    }

    /// The next version, if the page is written in place and has room.
    fn next_version(&self, recipe: &Recipe) -> Option<Recipe> {
        let full = || changes::log_bytes(&self.model.log, self.seed, recipe) == BODY_BYTES;
        if !recipe.kind.in_place() || recipe.kind == PageKind::Log && full() {
            return None;
        }
        Some(Recipe {
            version: recipe.version.checked_add(1)?,
            ..*recipe
        })
    }

    /// What a page of the device holds at first.
    fn device(&self, page: u32) -> Recipe {
        let reference = self.reference_near(page);
        let member = match reference {
            None => false,
            Some(reference) if reference == page => true,
            Some(_) if self.cloned(page) => true,
            Some(_) => self.unit(Purpose::Member, page) < self.associates_of_others(),
        };
        self.recipe(page, reference.filter(|_| member), DEVICE | page)
    }

    /// The first version of a new family on a page: a variant of the reference nearby with the
    /// probability that any page is of a cluster.
    fn begin(&mut self, page: u32) -> Recipe {
        let family = self.families;
        self.families += 1;
        let clustered = self.model.references + self.model.associates;
        let member = self.unit(Purpose::Fresh, family) < clustered;
        let reference = self.reference_near(page).filter(|_| member);
        self.recipe(page, reference, family)
    }

    fn recipe(&self, page: u32, reference: Option<u32>, family: u32) -> Recipe {
        let kind_of = reference.unwrap_or(page);
        Recipe {
            kind: self.model.kinds.at(self.unit(Purpose::Kind, kind_of)),
            cluster: reference.map_or(NO_CLUSTER, |page| DEVICE | page),
            family,
            version: 0,
        }
    }

    /// The page that pages like this one are variants of.
    fn reference_near(&self, page: u32) -> Option<u32> {
        if self.cloned(page) {
            return Some(page % self.image_pages);
        }
        let group = page.checked_div(self.group_pages)?;
        let hash = hash::hash(self.seed, Purpose::Anchor, group, 0);
        Some(group * self.group_pages + (hash % u64::from(self.group_pages)) as u32)
    }

    /// Whether a page is the same in all images.
    fn cloned(&self, page: u32) -> bool {
        let cloned = self
            .model
            .images
            .as_ref()
            .map_or(0.0, |images| images.cloned);
        self.unit(Purpose::Cloned, page % self.image_pages) < cloned
    }

    /// Share of associates among the pages that are no references.
    fn associates_of_others(&self) -> f64 {
        self.model.associates / (1.0 - self.model.references)
    }

    fn unit(&self, purpose: Purpose, name: u32) -> f64 {
        hash::unit(self.seed, purpose, name, 0)
    }
}

impl PageSource for Recipes {
    fn fill(&self, value: u32, into: &mut [u8; PAGE_BYTES]) -> bool {
        let Some(recipe) = self.get(value) else {
            return false;
        };
        materialise(&self.model, self.seed, &recipe, into);
        true
    }
}

impl RecipeEntry {
    fn new(recipe: &Recipe) -> RecipeEntry {
        RecipeEntry {
            cluster: recipe.cluster,
            family: recipe.family,
            version: recipe.version,
            kind: recipe.kind,
            continued: false,
        }
    }

    fn recipe(&self) -> Recipe {
        Recipe {
            kind: self.kind,
            cluster: self.cluster,
            family: self.family,
            version: self.version,
        }
    }
}

/// The recipes of all values of a workload, by their numbers in the trace that [`crate::ProfileSource`] makes
/// of the same profile and options; absent when the profile has no `[similarity]`. Makes the whole
/// workload once.
pub fn recipes(profile: &Profile, options: &SynthOptions) -> Option<Recipes> {
    let mut generator = Generator::new(profile, options);
    generator.keep_recipes(profile.similarity.as_ref()?, options.seed);
    let mut batch = Batch::default();
    while generator.next_batch(&mut batch) {}
    generator.into_recipes()
}

fn pages_of_image(images: u32, pages: u32) -> u32 {
    pages.div_ceil(images).max(1)
}

/// Pages of each image of a profile, if it has several.
pub fn image_pages(profile: &Profile, options: &SynthOptions) -> Option<u32> {
    let images = profile.similarity.as_ref()?.images.as_ref()?;
    Some(pages_of_image(
        images.count,
        options.scaled(profile).pages as u32,
    ))
}

/// Writes the pages of all values as a file of pages; their number, and the file that is still to be completed.
pub fn write_pages(
    recipes: &Recipes,
    path: impl AsRef<Path>,
    existing: Existing,
) -> flashlore_trace::Result<(u64, OutputFile)> {
    let mut writer = PagesWriter::create(path, existing)?;
    let mut page = [0; PAGE_BYTES];
    for entry in &recipes.entries {
        materialise(&recipes.model, recipes.seed, &entry.recipe(), &mut page);
        writer.push(&page)?;
    }
    writer.written()
}

#[cfg(test)]
mod tests {
    use flashlore_trace::workload::NO_VALUE;

    use super::*;
    use crate::presets;

    /// The recipes of a workload whose pages are all of one kind, independent of one another.
    fn pages_of(kind: &str) -> Recipes {
        let (_, text) = presets::load("sysbench").unwrap();
        let text = text
            .replace("record = 1.0", &format!("{kind} = 1.0"))
            .replace("associates = 0.85 ", "associates = 0.0 ")
            .replace("references = 0.01 ", "references = 0.0 ");
        let profile = Profile::parse("test", &text).unwrap_or_else(|error| panic!("{error}"));
        Recipes::new(&profile.similarity.unwrap(), 1, 1000)
    }

    #[test]
    fn a_value_takes_12_bytes() {
        assert_eq!(size_of::<RecipeEntry>(), 12);
    }

    #[test]
    fn a_page_written_in_place_goes_on_and_a_copy_begins_anew() {
        let mut recipes = pages_of("record");
        recipes.observe(5, Op::Read, NO_VALUE, 0);
        recipes.observe(5, Op::Write, 0, 1);
        recipes.observe(5, Op::Write, 1, 1);
        recipes.observe(5, Op::Write, 1, 2);
        // Page 6 held value 1 as well: its family went on elsewhere.
        recipes.observe(6, Op::Write, 1, 3);
        recipes.observe(6, Op::Write, 3, 4);
        // Nobody read page 7 before: this changes what the device holds there.
        recipes.observe(7, Op::Write, NO_VALUE, 5);
        assert_eq!(recipes.len(), 6);
        let all: Vec<(u32, u16)> = (0..6)
            .map(|value| recipes.get(value).unwrap())
            .map(|recipe| (recipe.family, recipe.version))
            .collect();
        let device = |page| DEVICE | page;
        let expected = [
            (device(5), 0),
            (device(5), 1),
            (device(5), 2),
            (0, 0),
            (0, 1),
        ];
        assert_eq!(all[..5], expected);
        assert_eq!(all[5], (device(7), 1));
    }

    #[test]
    fn a_page_written_as_a_whole_and_a_full_log_begin_anew() {
        let mut text = pages_of("text");
        let mut log = pages_of("log");
        let mut before = NO_VALUE;
        for value in 0..40 {
            text.observe(5, Op::Write, before, value);
            log.observe(5, Op::Write, before, value);
            before = value;
        }
        let families = |recipes: &Recipes| -> Vec<u32> {
            let mut families: Vec<u32> = recipes.entries.iter().map(|e| e.family).collect();
            families.dedup();
            families
        };
        assert_eq!(families(&text).len(), 40);
        // 40 versions of 512 bytes, 8 to a page.
        assert!(
            (4..=7).contains(&families(&log).len()),
            "{:?}",
            families(&log)
        );
    }

    #[test]
    fn there_is_one_page_of_zeros() {
        let mut recipes = pages_of("zero");
        for value in 0..10 {
            recipes.observe(value, Op::Read, NO_VALUE, value);
        }
        let zero = |value| {
            let mut page = [1; PAGE_BYTES];
            assert!(recipes.fill(value, &mut page));
            page == [0; PAGE_BYTES]
        };
        assert!(zero(0));
        assert!((1..10).all(|value| !zero(value)));
    }
}
