# A hash table from three words to a pointer, and a vector of pointers. NULL is no value.

cdef struct Slot:
    uint64_t a
    uint64_t b
    uint64_t c
    void *value

cdef struct Table:
    Slot *slots
    uint32_t size
    uint32_t count

cdef struct Vector:
    void **items
    int count
    int room

# Set once from the system's randomness: peers choose SSRCs and ports, and must not choose collisions.
cdef uint64_t table_seed = 0x9E3779B97F4A7C15u


cdef inline uint64_t mixed(uint64_t value) noexcept nogil:
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu
    return value ^ (value >> 31)


cdef inline uint32_t table_home(Table *table, uint64_t a, uint64_t b, uint64_t c) noexcept nogil:
    return <uint32_t>mixed(a ^ table_seed ^ mixed(b ^ table_seed ^ mixed(c + table_seed))) & (table.size - 1)


cdef inline void *table_get(Table *table, uint64_t a, uint64_t b, uint64_t c) noexcept nogil:
    if table.count == 0:
        return NULL
    cdef uint32_t at = table_home(table, a, b, c)
    while table.slots[at].value != NULL:
        if table.slots[at].a == a and table.slots[at].b == b and table.slots[at].c == c:
            return table.slots[at].value
        at = (at + 1) & (table.size - 1)
    return NULL


cdef int table_grow(Table *table) noexcept nogil:
    cdef uint32_t size = table.size * 2 if table.size else 8
    cdef Slot *slots = <Slot *>calloc(size, sizeof(Slot))
    if slots == NULL:
        return -1
    cdef Table larger = Table(slots, size, 0)
    cdef uint32_t at
    for at in range(table.size):
        if table.slots[at].value != NULL:
            table_place(&larger, table.slots[at].a, table.slots[at].b, table.slots[at].c, table.slots[at].value)
    free(table.slots)
    table[0] = larger
    return 0


cdef void table_place(Table *table, uint64_t a, uint64_t b, uint64_t c, void *value) noexcept nogil:
    cdef uint32_t at = table_home(table, a, b, c)
    while table.slots[at].value != NULL:
        if table.slots[at].a == a and table.slots[at].b == b and table.slots[at].c == c:
            table.slots[at].value = value
            return
        at = (at + 1) & (table.size - 1)
    table.slots[at] = Slot(a, b, c, value)
    table.count += 1


cdef int table_put(Table *table, uint64_t a, uint64_t b, uint64_t c, void *value) noexcept nogil:
    """0, or -1 without memory, which a key that is there already does not need."""
    if (table.count + 1) * 4 > table.size * 3 and table_get(table, a, b, c) == NULL and table_grow(table) < 0:
        return -1
    table_place(table, a, b, c, value)
    return 0


cdef void table_remove_at(Table *table, uint32_t at) noexcept nogil:
    """Close the hole, so that what was pushed past it is still found."""
    cdef uint32_t mask = table.size - 1
    cdef uint32_t hole = at
    cdef uint32_t home
    table.count -= 1
    while True:
        table.slots[hole].value = NULL
        while True:
            at = (at + 1) & mask
            if table.slots[at].value == NULL:
                return
            home = table_home(table, table.slots[at].a, table.slots[at].b, table.slots[at].c)
            # It may move into the hole unless its home lies between the hole and itself.
            if ((at - home) & mask) >= ((at - hole) & mask):
                break
        table.slots[hole] = table.slots[at]
        hole = at


cdef void table_remove(Table *table, uint64_t a, uint64_t b, uint64_t c) noexcept nogil:
    if table.count == 0:
        return
    cdef uint32_t at = table_home(table, a, b, c)
    while table.slots[at].value != NULL:
        if table.slots[at].a == a and table.slots[at].b == b and table.slots[at].c == c:
            table_remove_at(table, at)
            return
        at = (at + 1) & (table.size - 1)


cdef void table_free(Table *table) noexcept nogil:
    free(table.slots)
    memset(table, 0, sizeof(Table))


cdef int vector_add(Vector *vector, void *item) noexcept nogil:
    """0, or -1 without memory."""
    cdef int room
    cdef void **items
    if vector.count == vector.room:
        room = vector.room * 2 if vector.room else 4
        items = <void **>realloc(vector.items, room * sizeof(void *))
        if items == NULL:
            return -1
        vector.items = items
        vector.room = room
    vector.items[vector.count] = item
    vector.count += 1
    return 0


cdef void vector_remove(Vector *vector, void *item) noexcept nogil:
    """Keeps the order of the others."""
    cdef int at
    for at in range(vector.count):
        if vector.items[at] == item:
            memmove(&vector.items[at], &vector.items[at + 1], (vector.count - at - 1) * sizeof(void *))
            vector.count -= 1
            return


cdef void vector_free(Vector *vector) noexcept nogil:
    free(vector.items)
    memset(vector, 0, sizeof(Vector))
