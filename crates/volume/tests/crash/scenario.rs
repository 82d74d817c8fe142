//! A chain of power-ons that can be replayed: what a failure is reported as.

use std::fmt::Write;
use std::sync::Arc;

use flashlore_medium::Style;

use crate::crash::history::{Op, Setup};
use crate::crash::oracle::Oracle;
use crate::crash::session::{Session, Stop, Trouble};

/// Opening, operations, and the end of the power.
#[derive(Debug, Clone)]
pub struct Generation {
    pub ops: Arc<[Op]>,
    pub trouble: Trouble,
    /// What survives the end of the power.
    pub style: Style,
    /// Seed of what survives.
    pub seed: u64,
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
        }
    }
}

impl Scenario {
    /// Plays all generations.
    ///
    /// # Errors
    /// How the volume broke its promise, and in which generation.
    pub fn play(&self) -> Result<(), String> {
        let mut image = self.setup.image()?;
        let mut oracle = Oracle::new(vec![0; self.setup.exported as usize]);
        let mut epoch = 0;
        for (index, generation) in self.generations.iter().enumerate() {
            let medium = self.setup.medium(image);
            let session = Session::new(medium, oracle, epoch, generation.trouble);
            let mut session = session.with(self.setup.similar());
            if let Err(Stop::Broken(how)) = session.run(&generation.ops) {
                return Err(format!("generation {index}: {how}"));
            }
            image = session
                .medium()
                .survivors(generation.seed, generation.style);
            oracle = session.oracle;
            epoch = session.epoch;
        }
        Ok(())
    }

    /// The body of a test that plays it.
    pub fn as_test(&self) -> String {
        let mut text = String::from(
            "    use {Op::*, Policy::*, Style::*, Trouble::*};\n    let scenario = Scenario {\n",
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
                ..
            } = generation;
            line(format!(
                "        trouble: {trouble:?}, style: {style:?}, seed: {seed},"
            ));
            line("    },".to_owned());
        }
        line("],".to_owned());
        text + "    };\n    scenario.play().unwrap();\n"
    }
}
