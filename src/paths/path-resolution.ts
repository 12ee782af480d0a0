/** The maximum number of links on the way of one path, as in containerd's resolution of paths in an image. */
const maxLinks = 255;

/**
 * Follows a path below a root, name by name, so that neither `..` nor a link leads out of the root. The caller looks up each name that
 * `next` returns in the directory at `reached`, and says what it is: `enter` or `follow`.
 */
export class PathResolution {
  /** The names of the directory that was reached, from the root. None is a link or `..`. */
  readonly reached: string[];
  #links = 0;
  /** Names that are left, the next one last. */
  readonly #left: string[];
  readonly #limits: ResolutionLimits;

  /**
   * @param from the names of a directory without links, from which a relative path starts
   * @param limits makes the errors for a path with too many links, and for one that leads above the root if that is refused
   */
  constructor(path: string, limits: ResolutionLimits, from: readonly string[] = []) {
    this.#limits = limits;
    this.reached = path.startsWith("/") ? [] : [...from];
    this.#left = namesOf(path).reverse();
  }

  /** Returns the next name to look up; `undefined` at the end. */
  next(): string | undefined {
    for (let name = this.#left.pop(); name !== undefined; name = this.#left.pop()) {
      if (name !== "..") return name;
      if (this.reached.pop() === undefined && this.#limits.aboveRoot !== undefined)
        throw this.#limits.aboveRoot();
    }
    return undefined;
  }

  /** True if the name that `next` has returned is the last one. */
  get isLast(): boolean {
    return this.#left.length === 0;
  }

  /** True if a link has been followed. */
  get isThroughLink(): boolean {
    return this.#links > 0;
  }

  /** Enters the name, which is not a link. */
  enter(name: string): void {
    this.reached.push(name);
  }

  /** Continues at the target of the name, which is a link in the directory that was reached. */
  follow(target: string): void {
    if (++this.#links > (this.#limits.maxLinks ?? maxLinks)) throw this.#limits.tooManyLinks();
    if (target.startsWith("/")) this.reached.length = 0;
    for (const name of namesOf(target).reverse()) this.#left.push(name);
  }
}

interface ResolutionLimits {
  tooManyLinks(): Error;
  /** If it is absent, `..` of the root is the root. */
  aboveRoot?(): Error;
  /** Fewer links than in an image, where the kernel itself follows the path later. */
  maxLinks?: number;
}

/** Returns the names of a path, without empty ones and `.`. */
export function namesOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}
