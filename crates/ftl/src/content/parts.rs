//! What a device that looks at content is made of, as types, so that what is not in it costs nothing.

use std::marker::PhantomData;

use flashlore_content::{Content, Encoder, Ledger};
use flashlore_flash::{Flash, Tables};

use crate::core::Core;
use crate::error::FtlError;
use crate::map_cache::MapCache;
use crate::mapping::objects::Objects;
use crate::mapping::packing::Packing;
use crate::mapping::packs::Packs;
use crate::policies::{PolicySet, View};

/// Whether a device may keep old versions: a type, [`Present`] or [`Past`].
pub trait Memory {
    /// Whether it may.
    const ON: bool;
}

/// Nothing but the present is kept.
#[derive(Debug, Clone, Copy)]
pub struct Present;

/// Old versions may be kept.
#[derive(Debug, Clone, Copy)]
pub struct Past;

impl Memory for Present {
    const ON: bool = false;
}

impl Memory for Past {
    const ON: bool = true;
}

/// The types of a device. [`Of`] is made of them.
pub trait Parts {
    /// What policies know of a value.
    type Content: Content;
    /// What values are stored on.
    type Flash: Flash<Page: Clone>;
    /// Who names programs (unique, duplicate, reborn), or nobody.
    type Ledger: Ledger<Self::Content>;
    /// Who caches the map from logical to physical pages.
    type Cache: MapCache<PageOf<Self>>;
    /// Who encodes values in fewer bytes than a page, or nobody.
    type Encoder: Encoder<Self::Content, PageOf<Self>>;
    /// Whether old versions may be kept.
    type Memory: Memory;

    /// Whether values may be encoded.
    const ENCODES: bool = <Self::Encoder as Encoder<Self::Content, PageOf<Self>>>::ON;
    /// Whether old versions may be kept.
    const REMEMBERS: bool = <Self::Memory as Memory>::ON;
    /// Whether values may be stored to which no logical page refers: old versions, and bases of deltas.
    const HOLDS_MORE: bool = Self::ENCODES || Self::REMEMBERS;
    /// Whether a part of the map may be on flash.
    const CACHED: bool = <Self::Cache as MapCache<PageOf<Self>>>::CACHED;
}

/// What a mapping unit holds.
pub type PageOf<T> = <<T as Parts>::Flash as Flash>::Page;
/// An encoded value.
pub type EncodedOf<T> =
    <<T as Parts>::Encoder as Encoder<<T as Parts>::Content, PageOf<T>>>::Encoded;
/// Where the tables are.
pub type TablesOf<T> = <<T as Parts>::Flash as Flash>::Tables;
/// What the device keeps of each object.
pub type NoteOf<T> = <TablesOf<T> as Tables>::Note;
/// The map and the objects.
pub type ObjectsOf<T> = Objects<<T as Parts>::Content, TablesOf<T>>;
/// Packed pages.
pub type PacksOf<T> = Packs<EncodedOf<T>, TablesOf<T>>;
/// What is packed.
pub type PackingOf<T> = Packing<EncodedOf<T>, TablesOf<T>>;
/// The policies.
pub(crate) type PoliciesOf<T> = PolicySet<<T as Parts>::Content, EncodedOf<T>, TablesOf<T>>;
/// What policies look at.
pub(crate) type ViewOf<'a, T> = View<'a, <T as Parts>::Content, EncodedOf<T>, TablesOf<T>>;
/// What lies below the map.
pub type CoreOf<T> = Core<<T as Parts>::Flash, <T as Parts>::Cache>;
/// What can go wrong.
pub type Failure<T> = FtlError<<<T as Parts>::Flash as Flash>::Error>;

/// The parts named one by one.
#[derive(Debug)]
pub struct Of<C, F, L, K, E, M>(PhantomData<(C, F, L, K, E, M)>);

impl<C, F, L, K, E, M> Parts for Of<C, F, L, K, E, M>
where
    C: Content,
    F: Flash,
    F::Page: Clone,
    L: Ledger<C>,
    K: MapCache<F::Page>,
    E: Encoder<C, F::Page>,
    M: Memory,
{
    type Content = C;
    type Flash = F;
    type Ledger = L;
    type Cache = K;
    type Encoder = E;
    type Memory = M;
}
