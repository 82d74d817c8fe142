//! The device: core, map and policies in one place.

use std::cell::RefCell;

use flashlore_content::dedup::{DedupCounters, FingerprintIndex as _};
use flashlore_content::{Content, Dedup, DedupOptions, Ledger, NoEncoder};
use flashlore_flash::{Flash, Lpn, ObjectId, Tag, Time};

use super::encoding::{Encoded, EncodingCounters};
use super::parts::{CoreOf, Failure, ObjectsOf, Of, PackingOf, Parts, Present};
use super::store::Store;
use crate::core::Core;
use crate::error::OptionsError;
use crate::map_cache::{MapCache, Resident};
use crate::mapping::objects::Objects;
use crate::mapping::packing::Packing;
use crate::mapping::packs::Packs;
use crate::options::FtlOptions;
use crate::policies::delta::Delta;
use crate::policies::history::VersionsOptions;
use crate::policies::options::{EncodingOptions, SimilarOptions};
use crate::policies::out_of_line::Scan;
use crate::policies::{Asked, Policy, PolicySet};

/// The policies of a device.
#[derive(Debug, Clone)]
pub struct Policies<E> {
    /// How duplicates are looked for.
    pub dedup: DedupOptions,
    /// What is encoded.
    pub encoding: Option<EncodingOptions>,
    /// How old versions are kept.
    pub versions: Option<VersionsOptions>,
    /// Who encodes it.
    pub encoder: E,
}

/// A device that looks at content, made of these [`Parts`].
pub struct ContentDevice<T: Parts> {
    pub(crate) core: CoreOf<T>,
    pub(crate) store: Store<T>,
}

/// The device by its parts one by one: `L` names programs (unique, duplicate, reborn) or nobody does, `K` caches the
/// map from logical to physical pages, `E` encodes values in fewer bytes than a page, `M` says whether old versions may
/// be kept.
pub type ContentFtl<C, F, L, K = Resident, E = NoEncoder, M = Present> =
    ContentDevice<Of<C, F, L, K, E, M>>;

impl<C, F, L> ContentFtl<C, F, L>
where
    C: Content,
    F: Flash,
    F::Page: Clone,
    L: Ledger<C>,
{
    /// An empty device with its map in RAM.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn new(
        flash: F,
        options: FtlOptions,
        dedup: DedupOptions,
        ledger: L,
    ) -> Result<Self, OptionsError> {
        ContentFtl::with_map_cache(flash, options, dedup, ledger, Resident)
    }
}

impl<C, F, L, K> ContentFtl<C, F, L, K>
where
    C: Content,
    F: Flash,
    F::Page: Clone,
    L: Ledger<C>,
    K: MapCache<F::Page>,
{
    /// An empty device that deduplicates and nothing else.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn with_map_cache(
        flash: F,
        options: FtlOptions,
        dedup: DedupOptions,
        ledger: L,
        map_cache: K,
    ) -> Result<Self, OptionsError> {
        let policies = Policies {
            dedup,
            encoding: None,
            versions: None,
            encoder: NoEncoder,
        };
        ContentFtl::with_policies(flash, options, policies, ledger, map_cache)
    }
}

impl<T: Parts> ContentDevice<T> {
    /// An empty device.
    ///
    /// # Errors
    /// Settings that cannot work together.
    ///
    /// # Panics
    /// A policy that its parts have no room for.
    pub fn with_policies(
        flash: T::Flash,
        options: FtlOptions,
        policies: Policies<T::Encoder>,
        ledger: T::Ledger,
        map_cache: T::Cache,
    ) -> Result<Self, OptionsError> {
        let Policies {
            dedup,
            encoding,
            versions,
            encoder,
        } = policies;
        assert!(T::ENCODES || encoding.is_none(), "nobody encodes");
        assert!(T::REMEMBERS || versions.is_none(), "nothing is remembered");
        if dedup.out_of_line && dedup.verify {
            return Err(OptionsError::OutOfLineVerify);
        }
        let exported = options.exported;
        let most_objects = Self::most_objects(&flash, &options);
        let in_ram = versions.as_ref().and_then(|v| v.entries_in_ram);
        let log = encoding.is_some() || in_ram.is_some();
        let core = Core::with_map_cache(flash, FtlOptions { log, ..options }, map_cache)?;
        let tables = core.flash.tables();
        let bits = dedup.fingerprint_bits;
        let objects = Objects::new(&tables, exported, most_objects, bits);
        let most_packs = Self::most_packs(&core);
        let asked = Asked {
            tables: &tables,
            dedup,
            encoding,
            versions,
            exported,
            most_objects,
        };
        let store = Store {
            objects,
            packing: encoding.map(|_| Packing::new(Packs::new(&tables), most_packs)),
            encoded: encoding.as_ref().map(Encoded::new),
            policies: PolicySet::new(&asked),
            ledger,
            encoder,
            referenced: 0,
            located: Vec::new(),
        };
        Ok(ContentDevice { core, store })
    }

    /// A write has its new object before it releases the old one; what is encoded, or old, comes on top.
    pub(super) fn most_objects(flash: &T::Flash, options: &FtlOptions) -> u32 {
        let units = flash.geometry().units();
        if T::HOLDS_MORE {
            return units;
        }
        options.exported.saturating_add(1).min(units)
    }

    /// Packed pages with live deltas that there may be. Where fewer units can be stored than pages are
    /// exported, it depends on how many are.
    pub(super) fn most_packs(core: &CoreOf<T>) -> u32 {
        let exported = match core.options().thin {
            true => 0,
            false => u64::from(core.options().exported),
        };
        let most = core.most_live().saturating_sub(exported);
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// What lies below the map.
    pub fn core(&self) -> &CoreOf<T> {
        &self.core
    }

    /// What lies below the map.
    pub fn core_mut(&mut self) -> &mut CoreOf<T> {
        &mut self.core
    }

    /// The map and the objects.
    pub fn objects(&self) -> &ObjectsOf<T> {
        &self.store.objects
    }

    /// The pages to be hashed in idle time, where that is done.
    pub fn pages_to_scan(&self) -> Option<&Scan<T::Content>> {
        self.store.policies.scan.as_ref()
    }

    /// The fingerprint index and its controller.
    pub fn dedup(&self) -> &Dedup<<T::Content as Content>::Index> {
        &self.store.policies.dedup
    }

    /// The fingerprint index, to read entries into it that were written before, and how many handles its objects may have.
    pub fn index_mut(&mut self) -> (&mut <T::Content as Content>::Index, u32) {
        let Store {
            policies, objects, ..
        } = &mut self.store;
        (&mut policies.dedup.index, objects.handles())
    }

    /// What happened to host page writes.
    pub fn dedup_counters(&self) -> DedupCounters {
        self.store.policies.dedup.counters
    }

    /// The oracle that names programs.
    pub fn ledger(&self) -> &T::Ledger {
        &self.store.ledger
    }

    /// Sets the counts of policy and oracle to 0.
    pub fn restart_counters(&mut self) {
        self.core.restart_counters();
        self.store.policies.restart_counters();
        if let Some(encoded) = &mut self.store.encoded {
            encoded.restart_counters();
        }
        self.store.ledger.restart();
    }

    /// Lets time pass to `until`.
    ///
    /// # Errors
    /// A failure of the device.
    #[inline(always)]
    pub fn advance(&mut self, until: Time) -> Result<(), Failure<T>> {
        self.core.advance(&mut self.store, until)
    }

    /// Ends all background work at once.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn settle(&mut self, at: Time) -> Result<(), Failure<T>> {
        self.core.settle(&mut self.store, at)
    }

    /// The object that may hold this content.
    #[inline(always)]
    pub fn candidate(&self, content: T::Content) -> Option<ObjectId> {
        self.store.candidate(content)
    }

    /// What the index says of a content: objects that may hold it, whether or not they are there. No table is asked.
    pub fn hints(&self, content: T::Content) -> Vec<ObjectId> {
        let fingerprint = self.store.objects.fingerprint(content);
        let hints = RefCell::new(Vec::new());
        let note = |object| {
            hints.borrow_mut().push(object);
            false
        };
        self.store.policies.dedup.index.find(fingerprint, note);
        hints.into_inner()
    }

    /// From now on a page that has nothing to differ from becomes a delta from whatever page resembles it,
    /// if that was written since; nothing changes where there are no deltas.
    pub fn find_similar_bases(&mut self, options: SimilarOptions) {
        let most_objects = self.core.geometry.units();
        if let Some(delta) = self.store.policies.delta.as_mut().filter(|_| T::ENCODES) {
            delta.find_similar_bases(options, most_objects);
        }
    }

    /// Units on flash that hold anything of the present or of old versions, without translation pages.
    pub fn units_in_use(&self) -> u64 {
        self.store.units(&self.core)
    }

    /// Objects that logical pages refer to, where there are packed objects or old versions.
    pub fn referenced_objects(&self) -> u32 {
        self.store.referenced
    }

    /// What encoding did, if anything is encoded.
    pub fn encoding_counters(&self) -> Option<EncodingCounters> {
        let policies = &self.store.policies;
        let encoded = self.store.encoded.as_ref()?;
        let mut counters = EncodingCounters {
            bypassed: encoded.viability.bypassed,
            ..encoded.counters
        };
        if let Some(delta) = &policies.delta {
            (counters.deltas, counters.delta_bytes) = (delta.deltas, delta.bytes);
            let similar = delta.similar.as_ref().map(|similar| similar.counters);
            counters.similar = similar.unwrap_or_default();
        }
        if let Some(compress) = &policies.compress {
            (counters.compressed, counters.compressed_bytes) =
                (compress.compressed, compress.bytes);
        }
        Some(counters)
    }

    /// Who encodes.
    pub fn encoder_mut(&mut self) -> &mut T::Encoder {
        &mut self.store.encoder
    }

    /// What is packed, where values may be encoded.
    pub fn packing(&self) -> Option<&PackingOf<T>> {
        self.store.packing.as_ref()
    }

    /// The policy that stores updates as deltas, if there is one.
    pub fn delta(&self) -> Option<&Delta> {
        self.store.policies.delta.as_ref()
    }

    /// Forgets a logical page, at the present and at once; what it shared survives as long as another
    /// refers to it.
    ///
    /// # Errors
    /// An address out of range, or what its map entry meets.
    pub fn trim(&mut self, lpn: Lpn) -> Result<(), Failure<T>> {
        self.core.check_range(lpn)?;
        let now = self.core.present;
        self.core.access_map(&mut self.store, now, lpn, Tag::NONE)?;
        if self.store.forget(&mut self.core, lpn) {
            self.core.counters.host_trims += 1;
        }
        self.store.policies.on_trim(lpn);
        Ok(())
    }

    /// Bytes held by map, objects, index and blocks.
    pub fn heap_bytes(&self) -> usize {
        self.core.heap_bytes() + self.store.heap_bytes()
    }

    /// Recounts every invariant from scratch (`spec/ca-ssd.md` section 6).
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        self.store.check(&self.core)?;
        let agrees = |&lpn: &Lpn| {
            let entry = self.store.entry_of(self.store.objects.object_of(lpn));
            self.core.map_cache.agrees(lpn, entry)
        };
        if let Some(lpn) = (0..self.store.objects.len())
            .map(Lpn)
            .find(|lpn| !agrees(lpn))
        {
            return Err(format!("the map cache names another object for page {lpn}"));
        }
        let counters = self.store.policies.dedup.counters;
        let writes = counters.hits + counters.misses + counters.unhashed + counters.unsampled;
        if writes != self.core.counters.host_writes {
            return Err(format!(
                "hits + misses + unhashed + unsampled are {writes}, host writes {}",
                self.core.counters.host_writes
            ));
        }
        Ok(())
    }
}
