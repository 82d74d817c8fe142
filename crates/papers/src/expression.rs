//! Figures of runs put into one number.
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = factor (("*" | "/") factor)*
//! factor  = number | "scale" | FIGURE "@" RUN | NAME "(" sum ("," sum)* ")" | "(" sum ")"
//! ```
//!
//! `FIGURE@RUN` is a figure of a run, whose name ends at a blank, a comma or a parenthesis; `scale`
//! is the scale of the whole experiment. Functions: `cut(a, b)`, by how many percent b is below a;
//! `mean`, `max` and `min`; and those of [`Formula`]. `{trace}` inside the arguments of one of the three makes them one for each trace.

use std::collections::BTreeSet;

use crate::analytic::Formula;
use crate::figures::Figures;

/// What stands for each name of the list of traces.
pub const TRACE: &str = "{trace}";

#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Number(f64),
    Scale,
    Figure {
        figure: String,
        run: String,
    },
    /// Two expressions joined by `+`, `-`, `*` or `/`.
    Join(char, Box<Expression>, Box<Expression>),
    Call(Function, Vec<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// By how many percent the second is below the first.
    Cut,
    Mean,
    Max,
    Min,
    /// What a paper computes by hand.
    Model(Formula),
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// A sentence that says what was found and what was expected.
    pub fn parse(text: &str, traces: &[String]) -> Result<Self, String> {
        let mut parser = Parser {
            text,
            at: 0,
            traces,
        };
        let expression = parser.sum()?;
        match parser.peek() {
            None => Ok(expression),
            Some(found) => Err(parser.expected("the end", &found.to_string())),
        }
    }

    /// Its value. Not finite when a figure is absent or a divisor is 0.
    pub fn value(&self, figures: &Figures, scale: f64, suffix: &str) -> f64 {
        let of = |e: &Expression| e.value(figures, scale, suffix);
        match self {
            Self::Number(number) => *number,
            Self::Scale => scale,
            Self::Figure { figure, run } => figures
                .get(&format!("{run}{suffix}"), figure)
                .unwrap_or(f64::NAN),
            Self::Join('+', a, b) => of(a) + of(b),
            Self::Join('-', a, b) => of(a) - of(b),
            Self::Join('*', a, b) => of(a) * of(b),
            Self::Join(_, a, b) => of(a) / of(b),
            Self::Call(Function::Cut, pair) => 100.0 * (1.0 - of(&pair[1]) / of(&pair[0])),
            Self::Call(Function::Model(formula), all) => {
                formula.value(&all.iter().map(of).collect::<Vec<_>>())
            }
            Self::Call(Function::Mean, all) => all.iter().map(of).sum::<f64>() / all.len() as f64,
            // A figure that is absent makes the result absent: f64::max would pass over it.
            Self::Call(function, all) => all
                .iter()
                .map(of)
                .reduce(|a, b| match function {
                    _ if a.is_nan() || b.is_nan() => f64::NAN,
                    Function::Max => a.max(b),
                    _ => a.min(b),
                })
                .unwrap_or(f64::NAN),
        }
    }

    /// The runs whose figures it needs, with the names of the figures.
    pub fn needs(&self, needed: &mut BTreeSet<(String, String)>) {
        match self {
            Self::Number(_) | Self::Scale => {}
            Self::Figure { figure, run } => {
                needed.insert((run.clone(), figure.clone()));
            }
            Self::Join(_, a, b) => {
                a.needs(needed);
                b.needs(needed);
            }
            Self::Call(_, all) => all.iter().for_each(|e| e.needs(needed)),
        }
    }

    fn has_trace(&self) -> bool {
        match self {
            Self::Number(_) | Self::Scale => false,
            Self::Figure { run, .. } => run.contains(TRACE),
            Self::Join(_, a, b) => a.has_trace() || b.has_trace(),
            Self::Call(_, all) => all.iter().any(Self::has_trace),
        }
    }

    fn with_trace(&self, trace: &str) -> Self {
        let boxed = |e: &Expression| Box::new(e.with_trace(trace));
        match self {
            Self::Number(_) | Self::Scale => self.clone(),
            Self::Figure { figure, run } => Self::Figure {
                figure: figure.clone(),
                run: run.replace(TRACE, trace),
            },
            Self::Join(op, a, b) => Self::Join(*op, boxed(a), boxed(b)),
            Self::Call(function, all) => {
                Self::Call(*function, all.iter().map(|e| e.with_trace(trace)).collect())
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    traces: &'a [String],
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn accept(&mut self, wanted: &str) -> Option<char> {
        let found = self.peek().filter(|c| wanted.contains(*c))?;
        self.at += found.len_utf8();
        Some(found)
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    fn expected(&self, wanted: &str, found: &str) -> String {
        let (text, at) = (self.text, self.at);
        format!(
            "'{text}', column {}: expected {wanted}, found '{found}'",
            at + 1
        )
    }

    fn sum(&mut self) -> Result<Expression, String> {
        let mut left = self.product()?;
        while let Some(op) = self.accept("+-") {
            left = Expression::Join(op, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut left = self.factor()?;
        while let Some(op) = self.accept("*/") {
            left = Expression::Join(op, Box::new(left), Box::new(self.factor()?));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Expression, String> {
        if self.accept("(").is_some() {
            let inner = self.sum()?;
            return self.demand(")").map(|()| inner);
        }
        match self.peek() {
            Some(c) if c.is_ascii_digit() => {
                let number = self.take(|c| c.is_ascii_digit() || c == '.');
                let value = number
                    .parse()
                    .map_err(|_| self.expected("a number", &number))?;
                Ok(Expression::Number(value))
            }
            Some(c) if c.is_ascii_alphabetic() => self.named(),
            other => {
                let found = other.map_or(String::new(), String::from);
                Err(self.expected("a number, a figure or a function", &found))
            }
        }
    }

    fn named(&mut self) -> Result<Expression, String> {
        let name = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
        if self.text[self.at..].starts_with('@') {
            self.at += 1;
            let run = self.take(|c| !c.is_whitespace() && !"(),".contains(c));
            return Ok(Expression::Figure { figure: name, run });
        }
        if name == "scale" {
            return Ok(Expression::Scale);
        }
        let (function, arguments) = match (name.as_str(), Formula::named(&name)) {
            ("cut", _) => (Function::Cut, Some(2)),
            ("mean", _) => (Function::Mean, None),
            ("max", _) => (Function::Max, None),
            ("min", _) => (Function::Min, None),
            (_, Some((formula, arguments))) => (Function::Model(formula), Some(arguments)),
            _ => return Err(self.expected("FIGURE@RUN or a function before this", &name)),
        };
        self.arguments(function, &name, arguments)
    }

    /// The arguments of a function: so many, or any number of them.
    fn arguments(
        &mut self,
        function: Function,
        name: &str,
        wanted: Option<usize>,
    ) -> Result<Expression, String> {
        self.demand("(")?;
        let mut all = vec![self.sum()?];
        while self.accept(",").is_some() {
            all.push(self.sum()?);
        }
        self.demand(")")?;
        if let Some(wanted) = wanted {
            return match all.len() {
                n if n == wanted => Ok(Expression::Call(function, all)),
                n => {
                    let expected = format!("{wanted} arguments of {name} before this");
                    Err(self.expected(&expected, &n.to_string()))
                }
            };
        }
        let spread = |e: Expression| match e.has_trace() {
            true => self.traces.iter().map(|t| e.with_trace(t)).collect(),
            false => vec![e],
        };
        Ok(Expression::Call(
            function,
            all.into_iter().flat_map(spread).collect(),
        ))
    }

    fn demand(&mut self, wanted: &str) -> Result<(), String> {
        match self.accept(wanted) {
            Some(_) => Ok(()),
            None => {
                let found = self.peek().map_or(String::new(), String::from);
                Err(self.expected(wanted, &found))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        let mut figures = Figures::default();
        for (run, value) in [("web/plain", 80.0), ("web/big", 20.0), ("hm/big", 5.0)] {
            figures.insert(run, [("programs", value)]);
        }
        figures
    }

    fn value(text: &str) -> f64 {
        let traces = ["web".to_string(), "hm".to_string()];
        let expression = Expression::parse(text, &traces).unwrap_or_else(|e| panic!("{e}"));
        expression.value(&figures(), 0.5, "")
    }

    #[test]
    fn by_hand() {
        assert_eq!(value("1 + 2 * 3 - 4 / 2"), 5.0);
        assert_eq!(value("(1 + 2) * 3"), 9.0);
        assert_eq!(value("cut(programs@web/plain, programs@web/big)"), 75.0);
        assert_eq!(value("programs@web/plain / programs@web/big"), 4.0);
        assert_eq!(value("mean(programs@{trace}/big)"), 12.5);
        assert_eq!(value("max(2 * programs@{trace}/big, 41)"), 41.0);
        assert_eq!(value("min(3, 2, 7) / scale"), 4.0);
        assert_eq!(value("foreground(0.5, programs@web/plain / 160)"), 0.75);
    }

    #[test]
    fn what_is_absent_stays_absent() {
        assert!(value("programs@mail/plain").is_nan());
        assert!(value("erases@web/plain").is_nan());
        assert!(value("max(1, erases@web/plain, 2)").is_nan());
    }

    #[test]
    fn errors_say_where() {
        let error = |text| Expression::parse(text, &[]).unwrap_err();
        assert_eq!(
            error("1 +"),
            "'1 +', column 4: expected a number, a figure or a function, found ''"
        );
        assert!(error("cut(1)").contains("2 arguments of cut"));
        assert!(error("foreground(1, 2, 3)").contains("2 arguments of foreground"));
        assert!(error("best(1)").contains("FIGURE@RUN"));
        assert!(error("(1, 2)").contains("expected ), found ','"));
        assert!(error("1 2").contains("expected the end, found '2'"));
    }

    #[test]
    fn needs_name_runs_and_figures() {
        let traces = ["web".to_string(), "hm".to_string()];
        let text = "cut(a@x/plain, b@y) + max(c@{trace}/z)";
        let mut needed = BTreeSet::new();
        Expression::parse(text, &traces).unwrap().needs(&mut needed);
        let wanted = [("hm/z", "c"), ("web/z", "c"), ("x/plain", "a"), ("y", "b")];
        let wanted = wanted.map(|(run, figure)| (run.to_string(), figure.to_string()));
        assert_eq!(needed, BTreeSet::from(wanted));
    }
}
