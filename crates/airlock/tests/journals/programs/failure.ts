// A program that prints, then fails with an error of its own.
enum Level { Low = 1, High }
class Refused extends Error {
  constructor(readonly level: Level) {
    super(`refused at ${Level[level]}`);
    this.name = "Refused";
  }
}
console.warn("before", Level.High satisfies number);
const refuse = (level: Level): never => { throw new Refused(level); };
refuse(Level.High);
