//! Compression: any value in fewer bytes than a page, by itself (`spec/matrix.md`). It needs nothing else to be read,
//! so it keeps nothing alive, and it pays wherever it is short enough.

use flashlore_content::{Content, Sketch};
use flashlore_flash::{Lpn, Tables};

use super::forms::Form;
use super::{Asked, Policy, Served, View};

/// The policy's state: what it did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compress {
    /// Writes stored so since the start or the end of warm-up.
    pub compressed: u64,
    /// Their bytes, without directory entries.
    pub bytes: u64,
}

/// The policy, if values are to be compressed.
pub(super) fn room<S>(asked: &Asked<'_, S>) -> Option<Compress> {
    let compresses = asked.encoding.is_some_and(|options| options.compress);
    compresses.then(Compress::default)
}

impl<C: Content, V: Clone, S: Tables> Policy<C, V, S> for Compress {
    #[inline(always)]
    fn may_encode(&self, view: &View<'_, C, V, S>, _: Lpn) -> bool {
        view.packing.most_packs > 0
    }

    fn next_form(&self, view: &View<'_, C, V, S>, _: Lpn) -> Option<Form> {
        (view.packing.most_packs > 0).then_some(Form::ALONE)
    }

    #[inline(always)]
    fn form(&mut self, _: &View<'_, C, V, S>, _: Lpn, _: Option<&Sketch>) -> Option<Form> {
        Some(Form::ALONE)
    }

    #[inline(always)]
    fn on_write(&mut self, _: &mut crate::mapping::objects::Objects<C, S>, served: &Served) {
        if let Some((form, length)) = served.encoded
            && form.base.is_none()
        {
            self.compressed += 1;
            self.bytes += u64::from(length);
        }
    }

    fn restart_counters(&mut self) {
        *self = Compress::default();
    }
}
