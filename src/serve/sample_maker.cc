// SPDX-License-Identifier: Apache-2.0
#include "serve/sample_maker.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/caught.h"
#include "core/thread_clock.h"

namespace cutwater::serve {
namespace {

double bytes_of(const Sample& sample) {
  double bytes = 0;
  for (const Field& field : sample.fields)
    bytes += static_cast<double>(field.tensor.spec().bytes());
  return bytes;
}

// What a form costs that only has to be copied: to find it, and for each byte.
constexpr double kFindSeconds = 5e-6, kCopySecondsPerByte = 2e-10;

CacheKey key_of(const Draft& draft, std::uint64_t form) {
  return {draft.order.stream->data, form, draft.order.id, 0};
}

bool is_given_up(const Draft& draft) {
  return draft.order.given_up && draft.order.given_up->load();
}

// Whether it can be what was told of it before it was made.
bool fits(TensorSpec made, const TensorSpec& told) {
  if (made.shape.rank() != told.shape.rank()) return false;
  for (std::size_t axis = 0; axis < told.shape.rank(); ++axis)
    if (told.shape[axis] == kUnknown) made.shape[axis] = kUnknown;
  return made == told;
}

// Whether a sample at a stable cut has the tensors that the pipeline makes of this stored one, as
// its header tells. Throws Error where that is bad.
bool fits(const Sample& made, const Sample& stored, const Pipeline& pipeline) {
  using Told = std::pair<std::string_view, TensorView>;
  std::vector<Told> told;
  for (const Field& field : stored.fields) told.emplace_back(field.name, field.tensor.view());
  for (Cut cut = stored.cut; cut < made.cut; ++cut) {
    const Op& op = pipeline.steps()[static_cast<std::size_t>(cut)].op;
    const OpDef& def = op.def();
    const auto field = std::ranges::find(told, def.field, &Told::first);
    if (field == told.end()) return false;
    field->second = TensorView(def.out_spec(op.raw(), field->second, DrawnValues{}), nullptr);
  }
  return made.fields.size() == told.size() && std::ranges::all_of(told, [&](const Told& field) {
           const Tensor* const tensor = made.find(field.first);
           return tensor != nullptr && fits(tensor->spec(), field.second.spec());
         });
}

}  // namespace

SampleMaker::SampleMaker(MakerOptions options)
    : options_(std::move(options)), pool_(BufferPool::create(options_.pool_bytes)) {}

// With what is there of the sample by now: others may have asked for it since it was begun.
Facts SampleMaker::facts_now(const Draft& draft) const {
  const Stream& stream = *draft.order.stream;
  Facts facts = draft.facts;
  facts.learned = stream.hints && stream.hints->knows(draft.order.id);
  const auto& frontier = stream.book->frontier_form();
  facts.kept = frontier && can_look() && options_.cache->has(key_of(draft, *frontier));
  return facts;
}

// What the cache has costs a copy and weighs what it weighs. Only where looking takes no trip.
void SampleMaker::offer_kept(Draft& draft) const {
  if (!can_look()) return;
  for (std::size_t way = 1; way < draft.offers.size(); ++way) {
    const auto& form = draft.order.stream->book->form(way);
    if (!form || !options_.cache->has(key_of(draft, *form))) continue;
    if (const CacheValue value = options_.cache->get(key_of(draft, *form))) {
      const auto bytes = static_cast<double>(value.bytes().size());
      draft.offers[way] = {bytes, kFindSeconds + kCopySecondsPerByte * bytes};
    }
  }
}

Result<Draft> SampleMaker::begin(Order order, bool may_work) const try {
  Draft draft;
  draft.order = std::move(order);
  const Stream& stream = *draft.order.stream;
  const ReadContext into(*pool_);
  Result<Sample> read = stream.source->read(draft.order.id, into);
  if (!read) {
    Failure failure = std::move(read.failure());
    failure.path = stream.source->path(draft.order.id);
    return failure;
  }
  // Its bytes may be the source's own.
  using Both = std::pair<Sample, std::shared_ptr<const Source>>;
  const auto both = std::make_shared<Both>(std::move(read).value(), stream.source);
  draft.stored = {both, &both->first};
  const std::vector<Way>& ways = stream.book->ways();
  if (!may_work || ways.size() < 2 || draft.order.as_stored) return draft;

  const double start = thread_seconds();
  Sample numbered = lent(both->first);
  numbered.id += stream.first;
  Result<Draws> draws = stream.pipeline.draw(numbered, stream.seed, draft.order.epoch);
  if (!draws) return draft;  // whoever gets it as it is will find out the same
  draft.draws = std::move(draws).value();
  draft.facts.stored_bytes = bytes_of(*draft.stored);
  if (std::ranges::any_of(ways, &Way::excerpt))
    draft.facts.excerpt_share = stream.pipeline.excerpt_share(*draft.stored, draft.draws);
  draft.facts = facts_now(draft);
  stream.book->estimate(draft.facts, draft.offers);
  offer_kept(draft);
  draft.facts.needed_bytes = draft.facts.stored_bytes;
  for (std::size_t way = 0; way < ways.size(); ++way)
    if (ways[way].excerpt)
      draft.facts.needed_bytes = std::min(draft.facts.needed_bytes, draft.offers[way].bytes);
  draft.way = stream.always
                  ? ways.size() - 1
                  : WayBook::best(draft.offers, draft.order.price, draft.order.worth, draft.facts);
  if (!stream.always) draft.on_trial = stream.book->to_try(draft.facts);
  draft.seconds = thread_seconds() - start;
  return draft;
} catch (...) {
  return caught(order.id, "read");
}

Answer SampleMaker::finish(const Draft& draft) const {
  const Stream& stream = *draft.order.stream;
  Answer answer;
  answer.token = draft.order.token;
  answer.stored_bytes = bytes_of(*draft.stored);
  answer.ran_less = draft.ran_less;
  try {
    answer.path = stream.source->path(draft.order.id);
    std::optional<Form> form;
    answer.seconds = draft.seconds;
    if (draft.way > 0) {
      const double start = thread_seconds();
      const Way& way = stream.book->ways()[draft.way];
      form = cached(draft);
      if (form) {
        answer.cache = CacheUse::kHit;
      } else {
        Facts facts = facts_now(draft);
        const double begun = thread_seconds();
        std::optional<Sample> kept = kept_before(draft, way);
        facts.kept = kept.has_value();
        double at_cut = begun;
        form = make(draft, way, std::move(kept), at_cut);
        const double spent = thread_seconds() - begun;
        if (form) {
          stream.book->learn(draft.way, facts, {static_cast<double>(form->size()), spent},
                             at_cut - begun);
          cache(draft, *form, spent);
        }
        if (facts.kept && form)
          answer.cache = CacheUse::kHit;
        else if (options_.cache && stream.book->form(draft.way))
          answer.cache = CacheUse::kMiss;
      }
      answer.seconds += thread_seconds() - start;
    }
    const auto cost = [&draft](std::size_t way, double bytes) {
      return cost_of(draft.order.worth, draft.facts, way, bytes);
    };
    const bool smaller =
        form && cost(draft.way, static_cast<double>(form->size())) < cost(0, answer.stored_bytes);
    if (form && (smaller || stream.always)) {
      answer.way = draft.way;
      answer.form = std::move(*form);
    } else {
      answer.form = write(draft.stored, {});
    }
    answer.offers = draft.offers;
  } catch (...) {
    answer.form = caught(draft.order.id, "serve");
  }
  return answer;
}

SampleMaker::Form SampleMaker::write(std::shared_ptr<const Sample> sample,
                                     const Codec& codec) const {
  return shared_form(std::move(sample), codec, Checksum::kXxh3, *pool_);
}

// From what was kept of it, or else from what is stored; `at_cut`: when it stood at its cut, in the
// thread's seconds. Nothing: the sample is not to be had in this way.
std::optional<SampleMaker::Form> SampleMaker::make(const Draft& draft, const Way& way,
                                                   std::optional<Sample> kept, double& at_cut) const
    try {
  const Stream& stream = *draft.order.stream;
  RunContext how;
  how.pool = pool_;
  how.hints = stream.hints.get();
  how.reserve = [this](std::size_t bytes) {
    if (bytes > options_.sample_bytes)
      throw Error(Code::kBadSample, "takes more memory than a server gives it");
  };
  how.given_up = [&draft] { return is_given_up(draft); };
  std::shared_ptr<const void> lender = draft.stored;
  // What ops left alone is still the lender's, which is then held until it is sent.
  const auto shared = [&lender](Sample made) -> std::shared_ptr<const Sample> {
    const auto bytes = [](const Field& field) { return field.tensor.spec().bytes(); };
    const auto largest = std::ranges::max_element(made.fields, {}, bytes);
    if (largest == made.fields.end() || largest->tensor.owns_bytes())
      return std::make_shared<Sample>(std::move(made));
    using Both = std::pair<Sample, std::shared_ptr<const void>>;
    const auto both = std::make_shared<const Both>(std::move(made), lender);
    return {both, &both->first};
  };
  if (way.excerpt) {
    std::optional<Sample> excerpt = stream.pipeline.excerpt(*draft.stored, draft.draws, how);
    if (!excerpt) return std::nullopt;
    return write(shared(*std::move(excerpt)), way.codec);
  }
  Sample start = kept ? *std::move(kept) : lent(*draft.stored);
  if (start.holds) lender = std::exchange(start.holds, nullptr);
  const Cut from = start.cut;
  Result<Sample> made = stream.pipeline.run(std::move(start), from, way.cut, draft.draws, how);
  if (!made) return std::nullopt;
  at_cut = thread_seconds();
  return write(shared(std::move(made).value()), way.codec);
} catch (...) {  // out of memory
  return std::nullopt;
}

// What a way at a fresh cut can be made from; nothing: only the stored sample.
std::optional<Sample> SampleMaker::kept_before(const Draft& draft, const Way& way) const {
  const Stream& stream = *draft.order.stream;
  const auto& form = stream.book->frontier_form();
  if (!form || !stream.book->is_fresh(way) || !can_look()) return std::nullopt;
  const CacheKey key = key_of(draft, *form);
  if (!options_.cache->has(key)) return std::nullopt;
  return read_kept(draft, key, options_.cache->get(key), stream.pipeline.frontier());
}

// A form that the cache has, as what it is of. A file may have been replaced since it was kept, and
// the draws follow the header of the one that is there now: a form that cannot be made of this one
// is dropped, as if nothing had been kept.
std::optional<Sample> SampleMaker::read_kept(const Draft& draft, const CacheKey& key,
                                             const CacheValue& value, Cut cut) const {
  if (!value) return std::nullopt;
  try {
    Sample kept = read_form(
        {value.bytes(), value.hold(), pool_.get(), {}, options_.sample_bytes, Checksum::kXxh3},
        draft.order.id, cut);
    if (fits(kept, *draft.stored, draft.order.stream->pipeline)) return kept;
  } catch (const Error&) {  // damaged
  }
  options_.cache->drop(key);
  return std::nullopt;
}

std::optional<SampleMaker::Form> SampleMaker::cached(const Draft& draft) const {
  const auto& form = draft.order.stream->book->form(draft.way);
  if (!options_.cache || !form) return std::nullopt;
  const CacheKey key = key_of(draft, *form);
  const CacheValue value = options_.cache->get(key);
  if (!value) return std::nullopt;
  // In a codec it goes unread: whoever gets it draws by its own dimensions.
  const Way& way = draft.order.stream->book->ways()[draft.way];
  if (way.codec.is_none() && !read_kept(draft, key, value, way.cut)) return std::nullopt;
  auto copy = std::make_shared<Buffer>(pool_->allocate(value.bytes().size()));
  std::memcpy(copy->data(), value.bytes().data(), value.bytes().size());
  return Form{{copy->view()}, copy};
}

void SampleMaker::cache(const Draft& draft, const Form& form, double seconds) const {
  const auto& number = draft.order.stream->book->form(draft.way);
  if (!options_.cache || !number) return;
  options_.cache->put(key_of(draft, *number), form.size(), seconds,
                      [&](std::span<std::uint8_t> place) { form.copy_to(place); });
}

double SampleMaker::try_another(const Draft& draft, bool others_wait) const try {
  if (!draft.on_trial || *draft.on_trial == draft.way) return 0;
  WayBook& book = *draft.order.stream->book;
  const Way& way = book.ways()[*draft.on_trial];
  if (way.excerpt && draft.facts.excerpt_share >= 1) return 0;
  Facts facts = facts_now(draft);
  if (others_wait && !book.is_guessed(*draft.on_trial, facts)) return 0;
  const double begun = thread_seconds();
  std::optional<Sample> kept = kept_before(draft, way);
  facts.kept = kept.has_value();
  double at_cut = begun;
  const std::optional<Form> form = make(draft, way, std::move(kept), at_cut);
  const double spent = thread_seconds() - begun;
  if (!form && is_given_up(draft)) return spent;
  // What cannot be had of this sample may be of others; that it weighs as much as stored is no
  // great lie.
  const double bytes = form ? static_cast<double>(form->size()) : draft.facts.stored_bytes;
  book.learn(*draft.on_trial, facts, {bytes, spent}, at_cut - begun);
  return spent;
} catch (...) {  // out of memory: nobody waits for it
  return 0;
}

}  // namespace cutwater::serve
