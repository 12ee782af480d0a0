/** Returns a function that calls `make` once for each case, by the case's name, and keeps the result. */
export function oncePerCase<Case extends { name: string }, Made>(
  make: (each: Case) => Made,
): (each: Case) => Made {
  const known = new Map<string, { made: Made }>();
  return (each) => {
    const found = known.get(each.name) ?? { made: make(each) };
    known.set(each.name, found);
    return found.made;
  };
}
