type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the variables with those of `more`, which have precedence. On Windows, the case of names is ignored. */
export function withVariables(environment: Environment, more: Environment = {}): Environment {
  const all = { ...environment, ...more };
  return process.platform === "win32" ? ignoringCase(all) : all;
}

/** Returns variables that are found by names in any case, as in `Path` on Windows. They are listed in upper case. */
export function ignoringCase(environment: Environment): Environment {
  const variables = Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [name.toUpperCase(), value]),
  );
  const nameOf = (key: string | symbol) => (typeof key === "string" ? key.toUpperCase() : key);
  return new Proxy(variables, {
    get: (target, key) => Reflect.get(target, nameOf(key)),
    has: (target, key) => Reflect.has(target, nameOf(key)),
    getOwnPropertyDescriptor: (target, key) => Reflect.getOwnPropertyDescriptor(target, nameOf(key)),
  });
}
