# Things to do at a time: a heap ordered by time, then by when they were added.

cdef enum:  # TimerKind
    WATCH, RETRY_NACK, RETRY_KEYFRAME, SENDER_REPORT, RECEIVER_REPORT, EARLY_REPORT, TRANSPORT_FEEDBACK

cdef struct Timer:
    double when
    uint64_t order
    int kind
    uint64_t subject            # serial of its object; nothing happens when that is gone


cdef inline bint timer_before(Timer *a, Timer *b) noexcept nogil:
    return a.when < b.when or (a.when == b.when and a.order < b.order)


cdef void timer_add(Engine *engine, double when, int kind, uint64_t subject) noexcept nogil:
    cdef int room, at, parent
    cdef Timer *timers
    if engine.timer_count == engine.timer_room:
        room = engine.timer_room * 2 if engine.timer_room else 64
        timers = <Timer *>realloc(engine.timers, room * sizeof(Timer))
        if timers == NULL:
            engine.totals.drops[NO_MEMORY] += 1
            return
        engine.timers = timers
        engine.timer_room = room
    cdef Timer added = Timer(when, engine.timer_order, kind, subject)
    engine.timer_order += 1
    at = engine.timer_count
    engine.timer_count += 1
    while at:
        parent = (at - 1) // 2
        if not timer_before(&added, &engine.timers[parent]):
            break
        engine.timers[at] = engine.timers[parent]
        at = parent
    engine.timers[at] = added


cdef Timer timer_pop(Engine *engine) noexcept nogil:
    cdef Timer first = engine.timers[0]
    engine.timer_count -= 1
    cdef Timer last = engine.timers[engine.timer_count]
    cdef int at = 0, child
    while True:
        child = 2 * at + 1
        if child >= engine.timer_count:
            break
        if child + 1 < engine.timer_count and timer_before(&engine.timers[child + 1], &engine.timers[child]):
            child += 1
        if not timer_before(&engine.timers[child], &last):
            break
        engine.timers[at] = engine.timers[child]
        at = child
    engine.timers[at] = last
    return first


cdef void timers_run(Engine *engine, double now) noexcept nogil:
    """Do everything due by `now`, each at most once: what is added meanwhile waits for the next call."""
    cdef int count = 0, at
    if engine.timer_count == 0 or engine.timers[0].when > now:
        return
    cdef Timer *due = <Timer *>malloc(engine.timer_count * sizeof(Timer))
    if due == NULL:
        return
    while engine.timer_count and engine.timers[0].when <= now:
        due[count] = timer_pop(engine)
        count += 1
    for at in range(count):
        timer_do(engine, &due[at], now)
    free(due)


cdef void timer_do(Engine *engine, Timer *due, double now) noexcept nogil:
    cdef void *subject = table_get(&engine.objects, due.subject, 0, 0)
    cdef double again = 0.0
    if subject == NULL:
        return
    if due.kind == WATCH:
        again = producer_watch(engine, <Producer *>subject, now)
    elif due.kind == RETRY_NACK:
        again = encoding_retry_nack(engine, <Encoding *>subject, now)
    elif due.kind == RETRY_KEYFRAME:
        again = encoding_retry_keyframe(engine, <Encoding *>subject, now)
    elif due.kind == SENDER_REPORT:
        again = consumer_report(engine, <Consumer *>subject, now)
    elif due.kind == RECEIVER_REPORT:
        again = peer_report(engine, <Peer *>subject, now)
    elif due.kind == EARLY_REPORT:
        (<Peer *>subject).report_pending = False
        peer_report(engine, <Peer *>subject, now)
    elif due.kind == TRANSPORT_FEEDBACK:
        again = peer_transport_feedback(engine, <Peer *>subject, now)
    if again > 0.0:
        timer_add(engine, again, due.kind, due.subject)
