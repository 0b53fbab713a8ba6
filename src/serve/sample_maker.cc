// SPDX-License-Identifier: Apache-2.0
#include "serve/sample_maker.h"

#include <algorithm>
#include <cstring>
#include <utility>

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

CacheKey key_of(const Draft& draft, const Way& way) {
  const Stream& stream = *draft.order.stream;
  return {stream.data, form_number(stream.pipeline.fingerprint(way.cut), way.codec), draft.order.id,
          0};
}

// With whether ops know the sample by now: others may have asked for it since it was begun.
Facts facts_now(const Draft& draft) {
  const Stream& stream = *draft.order.stream;
  Facts facts = draft.facts;
  facts.learned = stream.hints && stream.hints->knows(draft.order.id);
  return facts;
}

}  // namespace

SampleMaker::SampleMaker(MakerOptions options)
    : options_(std::move(options)), pool_(BufferPool::create(options_.pool_bytes)) {}

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
  Result<Draws> draws = stream.pipeline.draw(*draft.stored, stream.seed, draft.order.epoch);
  if (!draws) return draft;  // whoever gets it as it is will find out the same
  draft.draws = std::move(draws).value();
  draft.facts.stored_bytes = bytes_of(*draft.stored);
  if (std::ranges::any_of(ways, &Way::excerpt))
    draft.facts.excerpt_share = stream.pipeline.excerpt_share(*draft.stored, draft.draws);
  draft.facts = facts_now(draft);
  stream.book->estimate(draft.facts, draft.offers);
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
      form = cached(draft, way);
      if (!form) {
        const Facts facts = facts_now(draft);
        const double begun = thread_seconds();
        form = make(draft, way);
        const double spent = thread_seconds() - begun;
        if (form) {
          stream.book->learn(draft.way, facts, {static_cast<double>(form->size()), spent});
          cache(draft, way, *form, spent);
        }
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

// Nothing: the sample is not to be had in this way.
std::optional<SampleMaker::Form> SampleMaker::make(const Draft& draft, const Way& way) const try {
  const Stream& stream = *draft.order.stream;
  RunContext how;
  how.pool = pool_;
  how.hints = stream.hints.get();
  how.reserve = [this](std::size_t bytes) {
    if (bytes > options_.sample_bytes)
      throw Error(Code::kBadSample, "takes more memory than a server gives it");
  };
  Sample stored = lent(*draft.stored);
  // What ops left alone is still the stored sample's, which is then kept until it is sent.
  const auto shared = [&draft](Sample made) -> std::shared_ptr<const Sample> {
    const auto bytes = [](const Field& field) { return field.tensor.spec().bytes(); };
    const auto largest = std::ranges::max_element(made.fields, {}, bytes);
    if (largest == made.fields.end() || largest->tensor.owns_bytes())
      return std::make_shared<Sample>(std::move(made));
    using Both = std::pair<Sample, std::shared_ptr<const Sample>>;
    const auto both = std::make_shared<const Both>(std::move(made), draft.stored);
    return {both, &both->first};
  };
  if (way.excerpt) {
    std::optional<Sample> excerpt = stream.pipeline.excerpt(stored, draft.draws, how);
    if (!excerpt) return std::nullopt;
    return write(shared(*std::move(excerpt)), way.codec);
  }
  const Cut from = stored.cut;
  Result<Sample> made = stream.pipeline.run(std::move(stored), from, way.cut, draft.draws, how);
  if (!made) return std::nullopt;
  return write(shared(std::move(made).value()), way.codec);
} catch (...) {  // out of memory
  return std::nullopt;
}

std::optional<SampleMaker::Form> SampleMaker::cached(const Draft& draft, const Way& way) const {
  if (!options_.cache || way.cut == 0 || !draft.order.stream->pipeline.stable(way.cut))
    return std::nullopt;
  const CacheValue value = options_.cache->get(key_of(draft, way));
  if (!value) return std::nullopt;
  auto copy = std::make_shared<Buffer>(pool_->allocate(value.bytes().size()));
  std::memcpy(copy->data(), value.bytes().data(), value.bytes().size());
  return Form{{copy->view()}, copy};
}

void SampleMaker::cache(const Draft& draft, const Way& way, const Form& form,
                        double seconds) const {
  if (!options_.cache || way.cut == 0 || !draft.order.stream->pipeline.stable(way.cut)) return;
  options_.cache->put(key_of(draft, way), form.size(), seconds,
                      [&](std::span<std::uint8_t> place) { form.copy_to(place); });
}

double SampleMaker::try_another(const Draft& draft) const {
  if (!draft.on_trial || *draft.on_trial == draft.way) return 0;
  WayBook& book = *draft.order.stream->book;
  const Way& way = book.ways()[*draft.on_trial];
  if (way.excerpt && draft.facts.excerpt_share >= 1) return 0;
  const Facts facts = facts_now(draft);
  const double begun = thread_seconds();
  const std::optional<Form> form = make(draft, way);
  const double spent = thread_seconds() - begun;
  // What cannot be had of this sample may be of others; that it weighs as much as stored is no
  // great lie.
  const double bytes = form ? static_cast<double>(form->size()) : draft.facts.stored_bytes;
  book.learn(*draft.on_trial, facts, {bytes, spent});
  return spent;
}

}  // namespace cutwater::serve
