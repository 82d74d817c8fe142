//! A chain of power-ons that can be replayed: what a failure is reported as.

use std::fmt::Write;
use std::sync::Arc;

use flashlore_medium::{MemoryMedium, Style};

use crate::crash::history::{Op, Setup};
use crate::crash::oracle::Oracle;
use crate::crash::session::{Session, Stop, Trouble};
use crate::support::loaded::Loaded;
use crate::support::strike::Strike;

/// Opening, operations, and the end of the power.
#[derive(Debug, Clone)]
pub struct Generation {
    pub ops: Arc<[Op]>,
    pub trouble: Trouble,
    /// What survives the end of the power.
    pub style: Style,
    /// Seed of what survives.
    pub seed: u64,
    /// What becomes of that before it is opened.
    pub damage: Option<Strike>,
}

/// A new volume and what happens to it.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub setup: Setup,
    pub generations: Vec<Generation>,
}

impl Generation {
    /// Opens and does operations without trouble.
    pub fn calm(ops: Arc<[Op]>) -> Self {
        Generation {
            ops,
            trouble: Trouble::Never,
            style: Style::All,
            seed: 0,
            damage: None,
        }
    }

    /// What a session of it leaves, which began with the image `before`, and what that may be recovered to.
    pub fn end(&self, session: &Session, before: &[u8]) -> (Vec<u8>, Oracle) {
        let medium = MemoryMedium::from_bytes(session.medium().survivors(self.seed, self.style));
        let mut oracle = session.oracle.clone();
        let Some(strike) = self.damage else {
            return (medium.into_bytes(), oracle);
        };
        // If it is damaged already, it may not tell. What is struck tells nothing any more: nothing else tells of the
        // last flush until the next one.
        let loaded = Loaded::of(&medium);
        let durable = loaded.map_or(0, |loaded| loaded.durable_without(&strike.range()));
        let mut image = medium.into_bytes();
        if strike.on(&mut image, before) {
            oracle.damage(durable);
        }
        (image, oracle)
    }
}

impl Scenario {
    /// Plays all generations.
    ///
    /// # Errors
    /// How the volume broke its promise, and in which generation.
    pub fn play(&self) -> Result<(), String> {
        self.play_until(usize::MAX).map(|_| ())
    }

    /// The medium before a generation, and what it leaves before that is damaged. None if it does not come so far.
    pub fn around(&self, index: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut calm = self.clone();
        calm.generations[index].damage = None;
        let before = calm.play_until(index).ok()??;
        Some((before, calm.play_until(index + 1).ok()??))
    }

    /// Plays so many generations. Answers the medium, unless it was refused.
    fn play_until(&self, count: usize) -> Result<Option<Vec<u8>>, String> {
        let mut image = self.setup.image()?;
        let mut oracle = Oracle::new(vec![0; self.setup.exported as usize]);
        let mut epoch = 0;
        for (index, generation) in self.generations.iter().take(count).enumerate() {
            let medium = self.setup.medium(image.clone());
            let session = Session::new(medium, oracle, epoch, generation.trouble);
            let mut session = session.of(&self.setup);
            match session.run(&generation.ops) {
                Err(Stop::Broken(how)) => return Err(format!("generation {index}: {how}")),
                Err(Stop::Refused) => return Ok(None),
                _ => {}
            }
            epoch = session.epoch;
            (image, oracle) = generation.end(&session, &image);
        }
        Ok(Some(image))
    }

    /// The body of a test that plays it.
    pub fn as_test(&self) -> String {
        let mut text = String::from(
            "    use {Op::*, Policy::*, Strike::*, Style::*, Trouble::*};\n    let scenario = Scenario {\n",
        );
        let mut line = |line: String| writeln!(text, "        {line}").expect("a string grows");
        line(format!("setup: {:?},", self.setup));
        line("generations: vec![".to_owned());
        for generation in &self.generations {
            line("    Generation {".to_owned());
            line("        ops: Arc::new([".to_owned());
            for op in generation.ops.iter() {
                line(format!("            {op:?},"));
            }
            line("        ]),".to_owned());
            let Generation {
                trouble,
                style,
                seed,
                damage,
                ..
            } = generation;
            line(format!(
                "        trouble: {trouble:?}, style: {style:?}, seed: {seed}, damage: {damage:?},"
            ));
            line("    },".to_owned());
        }
        line("],".to_owned());
        text + "    };\n    scenario.play().unwrap();\n"
    }
}
