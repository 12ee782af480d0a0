/** Makes what belongs to a case when it is first asked for, and the same again after that: by the case's name. */
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
