package sparkrowtime.support;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Function0;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/** Conversions between Java and Scala values, and helpers for Spark's trees. Independent of bounds. */
public final class Scala {
  private Scala() {}

  public static <A, B> Function1<A, B> function(Function<A, B> body) {
    return new AbstractFunction1<>() {
      @Override
      public B apply(A a) {
        return body.apply(a);
      }
    };
  }

  public static <A> Function0<A> call(Supplier<A> body) {
    return new AbstractFunction0<>() {
      @Override
      public A apply() {
        return body.get();
      }
    };
  }

  public static <A> Function1<A, BoxedUnit> each(Consumer<? super A> body) {
    return function(
        a -> {
          body.accept(a);
          return BoxedUnit.UNIT;
        });
  }

  /** A rewriting, defined for every node, as a partial function. A node that it returns unchanged is kept. */
  public static <A> AbstractPartialFunction<A, A> rewriting(UnaryOperator<A> body) {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(A a) {
        return true;
      }

      @Override
      public A apply(A a) {
        return body.apply(a);
      }
    };
  }

  /** The partial function for {@code collect} that selects the nodes of one class. */
  public static <A, B extends A> AbstractPartialFunction<A, B> only(Class<B> type) {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(A a) {
        return type.isInstance(a);
      }

      @Override
      public B apply(A a) {
        return type.cast(a);
      }
    };
  }

  public static <A> List<A> list(scala.collection.Seq<A> seq) {
    return CollectionConverters.asJava(seq);
  }

  public static <A> Seq<A> seq(List<A> list) {
    return CollectionConverters.asScala(new ArrayList<>(list)).toList();
  }

  public static <A> Iterator<A> chained(Iterator<A> first, Iterator<A> then) {
    return CollectionConverters.asJava(
        CollectionConverters.asScala(first).concat(() -> CollectionConverters.asScala(then)));
  }

  public static <A> A orNull(Option<A> option) {
    return option.isDefined() ? option.get() : null;
  }

  /**
   * A copy of the node with another value in its only field of the given type. The number of fields
   * differs between Spark versions.
   */
  public static <N extends TreeNode<?>, F> N copy(N node, Class<F> type, F value) {
    Object[] fields = new Object[node.productArity()];
    int replaced = 0;
    for (int i = 0; i < fields.length; i++) {
      boolean other = type.isInstance(node.productElement(i));
      fields[i] = other ? value : node.productElement(i);
      replaced += other ? 1 : 0;
    }
    if (replaced != 1) {
      throw new ShimMismatch("one " + type.getSimpleName() + " in " + node.getClass() + ", found " + replaced, null);
    }
    @SuppressWarnings("unchecked")
    N copy = (N) node.makeCopy(fields);
    return copy;
  }
}
